// The editor of studies: the preview follows what is typed, and nothing typed is left behind by accident.

const form = document.getElementById("study-form");
const preview = document.getElementById("study-preview");
let timer = 0;
let asked = 0;
let changed = false;

async function refresh() {
  const turn = ++asked;
  try {
    const response = await fetch(form.dataset.preview, { method: "POST", body: new URLSearchParams(new FormData(form)) });
    if (!response.ok || turn !== asked) return;
    preview.innerHTML = await response.text();
  } catch {
    // Without a connection the last preview stays; saving says what is the matter.
  }
}

form.addEventListener("input", () => {
  changed = true;
  clearTimeout(timer);
  timer = setTimeout(refresh, 300);
});
form.addEventListener("submit", () => { changed = false; });
addEventListener("beforeunload", (event) => { if (changed) event.preventDefault(); });

// A file of settings goes into the box, from which it is sent.
const file = document.getElementById("settings-file");
document.getElementById("file-line").hidden = false;
file.addEventListener("change", async () => {
  if (file.files.length > 0) document.getElementById("settings-text").value = await file.files[0].text();
});
