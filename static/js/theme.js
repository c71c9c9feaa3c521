// Runs before the first paint, so that a remembered choice of colours does not flash. Not a module for that reason.
(() => {
  const root = document.documentElement;
  const read = () => { try { return localStorage.getItem("iliad.theme"); } catch { return null; } };
  const chosen = read();
  if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;

  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    if (!button) return;
    const system = matchMedia("(prefers-color-scheme: dark)");
    const dark = () => (root.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
    const tell = () => {
      button.setAttribute("aria-pressed", String(dark()));
      document.dispatchEvent(new CustomEvent("iliad:theme"));
    };
    button.hidden = false;
    button.addEventListener("click", () => {
      root.dataset.theme = dark() ? "light" : "dark";
      try { localStorage.setItem("iliad.theme", root.dataset.theme); } catch { /* remembered for this page only */ }
      tell();
    });
    system.addEventListener("change", tell);
    tell();
  });
})();
