"use strict";
// The frame is on a page such as /temporal/namespaces/default/workflows/ID/RUN/timeline.
const run = document.getElementById("run");
const update = () => {
  const path = window.parent.location.pathname.match(/\/workflows\/([^/]+)/);
  if (path) {
    run.href = "/runs/" + path[1];
  }
};
for (const event of ["pointerenter", "focusin", "click"]) {
  document.addEventListener(event, update, true);
}
update();
