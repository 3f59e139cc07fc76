import assert from "node:assert/strict";
import { test } from "node:test";
import { firstPush } from "../contract/first-push.ts";
import { pages, renderPage, type PageCode } from "./edge-pages.ts";

const codes = Object.keys(pages) as PageCode[];

test("a page that asks to come again soon says so to people as well", () => {
  const soon = codes.filter((code) => Number(renderPage(code, "text/html").headers["retry-after"] ?? Infinity) <= 300);
  assert.ok(soon.includes("app_not_running"));
  for (const code of soon)
    for (const accept of ["text/html", "application/json", ""])
      assert.match(renderPage(code, accept).body, /Try again in a /, code);
});

test("a project without a deployment shows the command that the dashboard shows", () => {
  assert.ok(renderPage("nothing_deployed", "text/html").body.includes(`<code>${firstPush}</code>`));
});
