/* Large files go in pieces, with a bar, and go on where they broke off: after a lost connection by
   themselves, after a reload or a restart of the console when the same file is chosen again.
   Without this script, and for small files, the form sends the file in one go. */

const PIECE_BYTES = 8 * 1024 * 1024;
const TRIES = 8;  // without a byte of progress
const LONGEST_PAUSE_MS = 30_000;

class Refused extends Error {}

const pause = (ms) => new Promise((done) => { setTimeout(done, ms); });

async function ask(method, url, options = {}) {
  const answer = await fetch(url, { method, ...options });
  if (answer.ok) return answer;
  const told = await answer.json().catch(() => null);
  throw Object.assign(new Refused(told?.detail ?? `The answer was ${answer.status}.`), { status: answer.status });
}

const offsetOf = async (url, signal) =>
  Number((await ask("HEAD", url, { signal })).headers.get("Upload-Offset"));

/* The upload that an earlier try began, or a new one. */

async function begin(form, file, key, signal) {
  const known = localStorage.getItem(key);
  if (known) {
    try {
      await offsetOf(known, signal);
      return known;
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      localStorage.removeItem(key);  // given up meanwhile, or not ours
    }
  }
  const told = { name: file.name, size_bytes: file.size, ...(file.type && { media_type: file.type }) };
  const headers = { "Content-Type": "application/json" };
  const begun = await ask("POST", form.dataset.uploads, { headers, signal, body: JSON.stringify(told) });
  const url = form.dataset.uploads.replace(/incidents\/\d+\/uploads$/, `uploads/${(await begun.json()).id}`);
  localStorage.setItem(key, url);
  return url;
}

/* A lost connection is tried again, and so is a piece that another request still writes. */

async function send(url, file, shown, signal) {
  let offset = await offsetOf(url, signal);
  for (let tries = 0; offset < file.size;) {
    shown(offset);
    try {
      const body = file.slice(offset, offset + PIECE_BYTES);
      const added = await ask("PATCH", url, { headers: { "Upload-Offset": offset }, body, signal });
      offset = Number(added.headers.get("Upload-Offset"));
      tries = 0;
    } catch (error) {
      const passes = error instanceof TypeError || error.status === 409 || error.status >= 502;
      if (!passes || ++tries > TRIES) throw error;
      shown(offset, "No connection. Trying again.");
      await pause(Math.min(LONGEST_PAUSE_MS, 500 * 2 ** tries));
      offset = await offsetOf(url, signal).catch(() => offset);
    }
  }
  shown(offset, "Checking what came.");
}

function showing(form, file) {
  const bar = form.querySelector("progress");
  const says = form.querySelector("[role=status]");
  const mib = (bytes) => Math.floor(bytes / 1024 / 1024);
  bar.max = file.size;
  bar.hidden = false;
  return (offset, told) => {
    bar.value = offset;
    says.textContent = told ?? `${mib(offset)} of ${mib(file.size)} MiB sent`;
  };
}

const underWay = new Map();

/* A page that loads itself anew, as at the end of a job, asks first. */
addEventListener("beforeunload", (event) => { if (underWay.size) event.preventDefault(); });

async function upload(form, file) {
  const stop = new AbortController();
  const button = form.querySelector("button");
  const key = `upload ${form.dataset.uploads} ${file.name} ${file.size} ${file.lastModified}`;
  const shown = showing(form, file);
  underWay.set(form, stop);
  button.textContent = "Stop";
  try {
    const url = await begin(form, file, key, stop.signal);
    await send(url, file, shown, stop.signal);
    const made = await (await ask("POST", `${url}/finish`, { signal: stop.signal })).json();
    localStorage.removeItem(key);
    underWay.delete(form);
    location.assign(made.page);
  } catch (error) {
    const why = stop.signal.aborted ? "Stopped." : error instanceof Refused ? error.message : "No connection.";
    form.querySelector("[role=status]").textContent = `${why} Attach the same file again to go on.`;
  } finally {
    underWay.delete(form);
    button.textContent = "Attach";
  }
}

document.addEventListener("submit", (event) => {
  const form = event.target.closest("form[data-uploads]");
  const file = form?.querySelector("input[type=file]").files[0];
  if (!file || file.size <= PIECE_BYTES) return;
  event.preventDefault();
  if (underWay.has(form)) underWay.get(form).abort();
  else upload(form, file);
});
