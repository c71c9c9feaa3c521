// What a press does, on every page. A key or a button of the mouse that is pressed once acts once, and where it was meant.

const TEXTS = "textarea, input:not([type=checkbox], [type=radio], [type=range], [type=button], [type=submit])";
const ACTS = "button, summary, a, canvas";
const writes = (element) => element instanceof Element && element.matches(TEXTS);

// A key that is held down goes on where it went down. When the focus has moved in between, what comes is nobody's; and no
// button is pressed over and over.
let began = null;
addEventListener("keydown", (event) => {
  if (!event.repeat) { began = event.target; return; }
  if (event.isComposing || event.keyCode === 229 || (event.key !== "Enter" && event.key.length > 1)) return;
  const presses = (event.key === "Enter" || event.key === " ") && event.target instanceof Element && event.target.closest("button, summary, a") !== null;
  if (!presses && event.target === began) return;
  event.preventDefault();
  event.stopImmediatePropagation();
}, true);

// The mouse takes the focus away from no text that is being written: whoever presses a button and goes on typing writes,
// and does not press the button with the next blank.
addEventListener("mousedown", (event) => {
  if (event.button !== 0 || !writes(document.activeElement) || !(event.target instanceof Element)) return;
  const pressed = event.target.closest(ACTS);
  // A picture may want its keys, but not from somebody who writes sentences.
  if (pressed && (pressed.localName !== "canvas" || document.activeElement.localName === "textarea")) event.preventDefault();
});

// A slider needs the focus while it is dragged, and gives it back.
addEventListener("pointerdown", (event) => {
  const text = document.activeElement;
  if (event.pointerType !== "mouse" || !writes(text) || !(event.target instanceof Element) || !event.target.matches("input[type=range]")) return;
  const slider = event.target;
  addEventListener("pointerup", () => setTimeout(() => { if (document.activeElement === slider) text.focus({ preventScroll: true }); }), { once: true });
});
