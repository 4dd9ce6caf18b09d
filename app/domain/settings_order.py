"""Which changed setting to suspect first, and why, by what SGLang does with it.

A change of what ranks do together, or of the kernels, explains hangs and wrong output; a change
of limits explains latency; ports and seeds differ between any two starts.
"""

# ruff: noqa: SIM905 - lists of bare words read best as texts

from collections.abc import Mapping

# Different at every start, or measured by it.
VOLATILE = frozenset(
    "port nccl_port dist_init_addr random_seed startup_time engine_info_bootstrap_port host"
    " kv_events forward_pass_metrics_ipc_name forward_pass_metrics_worker_id"
    " disaggregation_bootstrap_port encoder_bootstrap_port weight_cache_socket base_gpu_id"
    " last_gen_throughput deployment_info tokenizer_e2e".split()
)
# Changes what is logged or told, not what is computed.
LOW_SUSPICION = frozenset(
    "log_level log_level_http log_requests log_requests_level log_requests_format"
    " log_requests_target show_time_cost enable_metrics enable_metrics_for_all_schedulers"
    " decode_log_interval crash_dump_folder enable_trace otlp_traces_endpoint otlp_service_name"
    " trace_modules export_metrics_to_file export_metrics_to_file_dir extra_metric_labels"
    " bucket_time_to_first_token bucket_inter_token_latency bucket_e2e_request_latency"
    " enable_request_time_stats_logging served_model_name skip_server_warmup warmups"
    " load_snapshot_publish_interval stat_loggers".split()
)
# Words in a setting's name, most suspect first, with the reason that is shown.
_REASONS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("version", "frontend"), "another build, or other weights: anything may differ"),
    (("model_path", "weight", "revision", "load_format"), "other weights"),
    (("a2a", "deepep", "allreduce", "all_reduce", "nccl", "mscclpp", "symm_mem", "nvls",
      "boundary_reduction", "dist_"), "communication among ranks"),
    (("tp_size", "dp_size", "pp_size", "ep_size", "nnodes", "dp_attention", "cp_size"),
     "other parallel groups: ranks talk to each other in another way"),
    (("overlap", "async_batch", "two_batch", "scheduler_recv"),
     "the order in which the scheduler runs and waits"),
    (("quant", "dtype", "kv_cache_dtype"), "other number format"),
    (("speculative", "spec_"), "speculative decoding"),
    (("disaggregation",), "transfer between prefill and decode"),
    (("hicache", "hierarchical", "radix", "session", "lmcache", "unified_cache"), "what is cached"),
    (("_backend", "kernel", "cuda_graph", "torch_compile"), "other kernels"),
    (("mem_fraction", "max_total_tokens", "max_total_num_tokens", "swa", "page_size", "memory",
      "offload", "context_length"), "room for the KV cache"),
    (("max_running", "max_queued", "chunked_prefill", "prefill", "schedule", "priority",
      "retraction", "new_token", "load_balance", "stream_interval"), "load, not progress"),
    (("lora",), "adapters"),
    (("watchdog", "timeout", "sigquit"), "when the server gives itself up"),
    (("api_key", "ssl_", "password", "hf_token"), "access"),
)  # fmt: skip
_SECTION_REASONS: Mapping[str, str] = {
    "version": "another build or model",
    "launch flags": "set by hand at the start",
    "settings": "an effective setting",
    "runtime": "a figure of this run",
}


def rank_of(name: str) -> tuple[int, str]:
    """Sort key of a changed setting: the most suspect comes first, then by name."""
    return _place(name), name


def why_of(section: str, name: str) -> str:
    """Why a changed setting stands where it does."""
    if name.partition(".")[0].removeprefix("--").replace("-", "_") in VOLATILE:
        return "differs between any two starts"
    place = _place(name)
    return _REASONS[place][1] if place < len(_REASONS) else _SECTION_REASONS[section]


def _place(name: str) -> int:
    plain = name.removeprefix("--").replace("-", "_").lower()
    found = (i for i, (words, _) in enumerate(_REASONS) if any(word in plain for word in words))
    return next(found, len(_REASONS))
