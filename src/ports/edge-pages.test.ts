import assert from "node:assert/strict";
import { test } from "node:test";
import { firstPush } from "../contract/first-push.ts";
import { pages, renderPage, type PageCode } from "./edge-pages.ts";

const codes = Object.keys(pages) as PageCode[];

test("every failure of an application asks to come again soon, in the header and in words", () => {
  const soon = codes.filter((code) => Number(renderPage(code, "text/html").headers["retry-after"] ?? Infinity) <= 300);
  const ofApplications = codes.filter((code) => code.startsWith("app_"));
  assert.deepEqual(
    ofApplications.filter((code) => !soon.includes(code)),
    [],
  );
  for (const code of soon)
    for (const accept of ["text/html", "application/json", ""])
      assert.match(renderPage(code, accept).body, /Try again in a /, code);
});

test("a project without a deployment shows the command that the dashboard shows", () => {
  assert.ok(renderPage("nothing_deployed", "text/html").body.includes(`<code>${firstPush}</code>`));
});
