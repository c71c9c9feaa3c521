// The form of a new run: choosing a preset chooses its teacher, until the person chose one.

const form = document.getElementById("new-run");
if (form) {
  const share = document.getElementById("new-share");
  let chosen = false;
  const tell = () => { share.hidden = form.elements.mode.value !== "mixed"; };
  form.addEventListener("change", ({ target }) => {
    if (target.name === "mode") chosen = true;
    if (target.name === "preset" && !chosen) form.elements.mode.value = target.dataset.teacher;
    tell();
  });
  // Started twice by a double click, a run would cost twice.
  let sent = false;
  form.addEventListener("submit", (event) => {
    if (sent) event.preventDefault();
    sent = true;
    form.querySelector("[type=submit]").setAttribute("aria-disabled", "true");
  });
  addEventListener("pageshow", () => {
    sent = false;
    form.querySelector("[type=submit]").removeAttribute("aria-disabled");
    tell();
  });
  document.getElementById("new-run-problem")?.scrollIntoView({ block: "center" });
}
