// The line about the study on the teaching page: how much was given, and where to go when something else comes now.

const line = document.getElementById("study");

// Shows how the teacher stands, as the server says with every execution and after every answer. Where something else than an
// execution comes now (a question, the end), the page goes there, and true comes back.
export function stands(study) {
  if (!line || !study) return false;
  document.getElementById("study-given").textContent = study.given;
  const bar = document.getElementById("study-bar");
  if (bar) bar.value = study.given;
  if (!study.next) return false;
  const base = document.querySelector("header .brand").getAttribute("href").replace(/\/$/, "");
  location.assign(base + study.next);
  return true;
}
