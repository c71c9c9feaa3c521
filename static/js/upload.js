// Forms with files, and those that bring in what was sent before: what is too large is said before it is sent, and while it is sent the page says so.

const megabytes = (bytes) => bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`;

for (const form of document.querySelectorAll("form.upload")) {
  const state = form.querySelector(".upload-state");
  const limit = Number(form.dataset.limit);
  const size = () => [...form.querySelectorAll("input[type=file]")].flatMap((field) => [...field.files]).reduce((sum, file) => sum + file.size, 0);
  const tooLarge = () => size() > limit && `These are ${megabytes(size())}, and at most ${megabytes(limit)} can be sent. Send fewer or smaller files.`;
  form.addEventListener("change", () => { state.textContent = tooLarge() || ""; });
  let sending = false;
  form.addEventListener("submit", (event) => {
    const sentence = tooLarge();
    if (sentence || sending) {
      event.preventDefault();
      if (sentence) state.textContent = sentence;
      return;
    }
    sending = true;
    state.textContent = `Sending and checking ${megabytes(size())} …`;
  });
  // Whoever comes back to the page can send again.
  addEventListener("pageshow", () => { sending = false; });
}

for (const form of document.querySelectorAll("form.sent")) {
  let sending = false;
  form.addEventListener("submit", (event) => {
    if (sending) return event.preventDefault();
    sending = true;
    form.querySelector(".upload-state").textContent = "Storing the rows …";
  });
  addEventListener("pageshow", () => { sending = false; });
}
