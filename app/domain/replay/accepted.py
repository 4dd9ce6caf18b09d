"""Which fields SGLang's native routes accept, by the release that first had them.

Read off the classes of the released wheels 0.4.6.post5, 0.4.9, 0.5.2, 0.5.5, 0.5.9, 0.5.13,
0.5.17, 0.5.21 and 0.5.23 (``managers/io_struct.py`` GenerateReqInput and EmbeddingReqInput,
``sampling/sampling_params.py``); a field is dated by the first of these that has it. Since 0.5.23
``entrypoints/api_contract.py`` answers 400 to any other key in ``sampling_params``; before, the
constructor refused it. Other unknown fields of a request are ignored, which would change what is
asked without a word: so they are not sent either.
"""

from collections.abc import Mapping

from app.domain.replay.options import Version

_OLDEST = (0, 4, 6)


def _since(**releases: str) -> dict[str, Version]:
    """Names by the release that has them first; "v0_5_9" is written for 0.5.9."""
    return {
        name: tuple(int(part) for part in release[1:].split("_"))
        for release, names in releases.items()
        for name in names.split()
    }


SAMPLING: Mapping[str, Version] = _since(
    v0_4_6="temperature top_p top_k min_p frequency_penalty presence_penalty repetition_penalty"
    " max_new_tokens min_new_tokens n stop stop_token_ids ignore_eos skip_special_tokens"
    " spaces_between_special_tokens no_stop_trim json_schema regex ebnf structural_tag"
    " stream_interval custom_params",
    v0_4_9="logit_bias",
    v0_5_5="sampling_seed stop_regex",
    v0_5_21="beam_width",
    v0_5_23="choice",
)
# Of these a value that is no number is refused, and says nothing.
SAMPLING_NUMBERS = frozenset(
    "temperature top_p top_k min_p frequency_penalty presence_penalty repetition_penalty"  # noqa: SIM905
    " max_new_tokens min_new_tokens n sampling_seed stream_interval beam_width".split()
)

_MEDIA = "image_data audio_data modalities"
GENERATE: Mapping[str, Version] = _since(
    v0_4_6=f"text input_ids input_embeds {_MEDIA} sampling_params stream return_logprob"
    " logprob_start_len top_logprobs_num token_ids_logprob return_text_in_logprobs"
    " return_hidden_states lora_path custom_logit_processor",
    v0_5_2="video_data priority",
    v0_5_5="extra_key return_entropy",
    v0_5_9="require_reasoning return_routed_experts routed_experts_start_len max_dynamic_patch"
    " min_dynamic_patch image_max_dynamic_patch video_max_dynamic_patch",
    v0_5_13="use_audio_in_video return_indexer_topk return_prompt_token_ids",
    v0_5_17="images_config max_thinking_tokens return_sampling_mask return_flat_raw_top_logprobs"
    " return_flat_raw_top_logprobs_b64",
    v0_5_21="cache_salt sampling_logprobs_mode video_config",
    v0_5_23="mm_processor_kwargs return_flat_raw_output_top_logprobs",
)
ENCODE: Mapping[str, Version] = _since(
    v0_4_6=f"text input_ids input_embeds {_MEDIA}",
    v0_4_9="is_cross_encoder_request",
    v0_5_2="video_data",
    v0_5_5="dimensions priority",
    v0_5_9="lora_path",
    v0_5_13="return_pooled_hidden_states return_prompt_token_ids",
)

# What belongs to the server that recorded it, or to whoever asked: sent to nobody, on any route.
FORBIDDEN = frozenset(
    """
    rid request_id http_worker_ipc bootstrap_host bootstrap_port bootstrap_room bootstrap_pair_key
    decode_tp_size routed_dp_rank data_parallel_rank data_parallel_rank_decode
    disagg_prefill_dp_rank lora_id session_params session_id conversation_id routing_key
    received_time received_time_perf validation_time external_trace_header trace_context label
    custom_labels log_metrics no_logs background return_bytes need_wait_for_image
    need_wait_for_mm_inputs num_items_assigned encoder_urls mm_data_mooncake mm_hashes
    mm_content_hashes kv_hints positional_embed_overrides embed_overrides embed_override_token_id
    token_indices_to_pool multi_item_delimiter_indices decision_layout watermark user metadata
    store safety_identifier prompt_cache_key previous_response_id
    """.split()  # noqa: SIM905  (a word list reads best as words)
)
# Of these, those that a model sees nothing of: it answers the same without them.
UNSEEN = FORBIDDEN - frozenset(
    """
    session_params session_id mm_data_mooncake positional_embed_overrides embed_overrides
    embed_override_token_id token_indices_to_pool multi_item_delimiter_indices watermark
    previous_response_id
    """.split()  # noqa: SIM905
)
# Set by the server when it takes a request in: no fields of a request, so not told as taken out.
BOOKKEEPING = frozenset(("is_single", "batch_size", "parallel_sample_num"))
USUALLY_ON = frozenset(("log_metrics",))  # in every request, and says nothing
NOTHING_SAID = "nulls and defaults"  # what fields without a word are told as, all together
# What our own export at T0 has in the place of a prompt, and reading adds for its tables.
OF_SHAPES = frozenset(
    "prompt_tokens prompt_characters prefix features image_data_count video_data_count"  # noqa: SIM905
    " audio_data_count".split()
)
CUSTOM_CODE = frozenset(("custom_logit_processor", "custom_params"))


def knows(since: Version, target: Version | None) -> bool:
    """Whether a target of that release has a field; one of unknown release is taken to."""
    return target is None or since <= max(target, _OLDEST)
