// Stand-ins of two crowd platforms on this machine, after their public documentation: what they put into the link of a study, and
// how somebody who comes back is taken as done. Their looks are not imitated.
//
// Prolific (docs.prolific.com, "The study object", "Retrieve a submission"): the study's address has places for the person, the study
// and the submission; a person who opens it has a submission with the status ACTIVE; who comes back by
// /submissions/complete?cc=CODE has entered that code, and the code says what becomes of the submission.
//
// Mechanical Turk (survey links): the task is shown in a frame before it is accepted, with ASSIGNMENT_ID_NOT_AVAILABLE as its assignment;
// the person pastes a code into the task's form, and the requester compares it.

import { randomBytes } from "node:crypto";
import { createServer } from "node:http";

const id = () => randomBytes(12).toString("hex");
const escaped = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/"/g, "&quot;");
const html = (title, body) => `<!doctype html><html lang="en"><title>${title}</title><link rel="icon" href="data:,"><main><h1>${title}</h1>${body}</main></html>`;

export async function startPlatforms() {
  const studies = new Map();
  const submissions = [];
  const tasks = new Map();
  const assignments = [];

  // Of one person and study there is one submission.
  function submission(study, participant) {
    let found = submissions.find((s) => s.study_id === study && s.participant === participant);
    if (!found) {
      found = { id: id(), study_id: study, participant, status: "ACTIVE", entered_code: null };
      submissions.push(found);
    }
    return found;
  }

  const cookie = (request) => request.headers.cookie?.match(/participant=([^;]+)/)?.[1];

  const routes = {
    // The page of a study, as the person sees it who is signed in.
    "GET /studies/:key": (request, key, query) => {
      const study = studies.get(key);
      if (!study) return [404, html("No such study", "")];
      const person = query.get("participant");
      const mine = submission(key, person);
      const address = study.external_study_url
        .replaceAll("{{%PROLIFIC_PID%}}", person)
        .replaceAll("{{%STUDY_ID%}}", key)
        .replaceAll("{{%SESSION_ID%}}", mine.id);
      return [200, html("A study", `<p><a id="open" href="${escaped(address)}">Open the study</a></p>`), { "set-cookie": `participant=${person}; Path=/` }];
    },
    "GET /submissions/complete": (request, key, query) => {
      const person = cookie(request);
      const code = query.get("cc");
      const mine = submissions.find((s) => s.participant === person && studies.has(s.study_id));
      if (!mine) return [403, html("You are not signed in", "")];
      // A submission that was handed in stays as it is.
      if (mine.status === "ACTIVE") {
        const known = studies.get(mine.study_id).completion_codes.find((c) => c.code === code);
        mine.status = known?.code_type === "SCREENED_OUT" ? "SCREENED OUT" : "AWAITING REVIEW";
        mine.entered_code = code;
      }
      return [200, html("Thank you", `<p id="status">${mine.status}</p>`)];
    },
    // A task as a frame of the platform shows it: the address has the names of the assignment, and a line of script in the task
    // puts them into the link.
    "GET /tasks/:key": (request, key, query) => {
      const task = tasks.get(key);
      const preview = query.get("preview") !== null;
      const names = { workerId: preview ? "" : query.get("worker"), hitId: key, assignmentId: preview ? "ASSIGNMENT_ID_NOT_AVAILABLE" : "" };
      if (!preview) {
        let mine = assignments.find((a) => a.hit === key && a.worker === names.workerId);
        if (!mine) assignments.push(mine = { id: id(), hit: key, worker: names.workerId, code: null, status: "Accepted" });
        names.assignmentId = mine.id;
      }
      const link = task.link.replace(/\$\{(\w+)\}/g, (whole, name) => names[name] ?? whole);
      const form = preview ? "" : `<form method="post" action="/mturk/externalSubmit"><input type="hidden" name="assignmentId" value="${names.assignmentId}">
        <label>Survey code <input name="surveycode" required></label> <button>Submit</button></form>`;
      return [200, html("A task", `<p><a id="open" href="${escaped(link)}" target="_blank">The survey</a></p>${form}`)];
    },
    "POST /mturk/externalSubmit": (request, key, query, body) => {
      const mine = assignments.find((a) => a.id === body.get("assignmentId"));
      if (!mine) return [404, html("No such assignment", "")];
      Object.assign(mine, { code: body.get("surveycode").trim(), status: "Submitted" });
      return [200, html("Submitted", "")];
    },
  };

  const server = createServer(async (request, response) => {
    const url = new URL(request.url, "http://stand-in");
    let body = "";
    for await (const piece of request) body += piece;
    for (const [route, handle] of Object.entries(routes)) {
      const [method, path] = route.split(" ");
      const found = new RegExp(`^${path.replace(":key", "([^/]+)")}$`).exec(url.pathname);
      if (method !== request.method || !found) continue;
      const [status, text, headers] = handle(request, found[1], url.searchParams, new URLSearchParams(body));
      response.writeHead(status, { "content-type": "text/html; charset=utf-8", ...headers }).end(text);
      return;
    }
    response.writeHead(404).end();
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  // Another host than the study's, as in the world.
  const address = `http://localhost:${server.address().port}`;
  return {
    address,
    submissions,
    assignments,
    // Publishes a study and says where a person finds it.
    publish(study) {
      const key = id();
      studies.set(key, study);
      return (participant) => `${address}/studies/${key}?participant=${participant}`;
    },
    // The requester compares a list of those who are to be paid.
    review(approve) {
      for (const one of submissions.filter((s) => s.status === "AWAITING REVIEW")) one.status = approve(one) ? "APPROVED" : "REJECTED";
    },
    // Offers a survey link as a task, and says where a worker finds it.
    offer(link) {
      const key = id();
      tasks.set(key, { link });
      return (worker) => `${address}/tasks/${key}?${worker ? `worker=${worker}` : "preview"}`;
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
