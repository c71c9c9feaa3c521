// The list of runs, and the form of a new run: choosing a preset chooses its teacher, until the person chose one.

const filter = document.getElementById("run-filter");
if (filter) {
  // A choice from a list applies at once; words are sent with Enter.
  filter.addEventListener("change", ({ target }) => { if (target.type !== "search") filter.requestSubmit(); });
  // Fields that say nothing would only make the address long.
  filter.addEventListener("formdata", ({ formData }) => {
    for (const [name, value] of [...formData]) if (value === "" || (name === "sort" && value === "newest")) formData.delete(name);
  });
}

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
