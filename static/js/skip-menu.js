// The menu of reasons for skipping: by mouse, by keyboard, and left again without a choice.

const $ = (id) => document.getElementById(id);

export function setUpSkipMenu() {
  const [skip, skipForm] = [$("skip"), $("skip-form")];
  // Opened by a key, the menu takes the focus; opened by the mouse, the focus stays where it was: in the box.
  let byKey = false;
  skip.querySelector("summary").addEventListener("click", (event) => { byKey = event.detail === 0; });
  skip.addEventListener("toggle", () => { if (skip.open) skipForm.scrollIntoView({ block: "nearest" }); if (skip.open && byKey) skip.querySelector(".menu-item").focus(); });
  // A letter typed in the menu is the beginning of a reason in one's own words. Else its first blank would press the button
  // that has the focus.
  skipForm.addEventListener("keydown", (event) => {
    if (event.isComposing || event.keyCode === 229 || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key.length === 1 && event.key !== " " && event.target !== $("reason")) $("reason").focus();
  });
  skip.addEventListener("focusout", ({ relatedTarget }) => { if (document.hasFocus() && !skip.contains(relatedTarget)) skip.open = false; });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.isComposing || !skip.open) return;
    skip.open = false;
    skip.querySelector("summary").focus();
  });
  // Enter would press the form's first button, which stands for another reason.
  $("reason").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    if (!event.repeat) skipForm.requestSubmit(skipForm.querySelector(".own-reason button"));
  });
  document.addEventListener("pointerdown", (event) => { if (skip.open && !skip.contains(event.target)) skip.open = false; });
}
