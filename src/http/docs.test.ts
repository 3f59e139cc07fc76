import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { sharedApi } from "../../test/support/test-platform.ts";
import { docsAbout } from "../dashboard/frame/docs-about.ts";
import { readPages } from "../mcp/pages.ts";
import { foundContent } from "./docs-html.ts";

const api = await sharedApi();
const pages = await readPages();
const htmlOf = new Map(
  await Promise.all(pages.map(async ({ name }) => [name, (await api.call("GET", `/docs/${name}`)).text] as const)),
);

function assertLeads(href: string, from: string): void {
  const [, name = from, anchor] = /^(?:\/docs\/([^#]*))?(?:#(.*))?$/.exec(href) ?? [];
  const text = htmlOf.get(name) ?? "";
  assert.ok(text !== "" && (anchor === undefined || text.includes(` id="${anchor}"`)), `${from}: ${href}`);
}

test("every link within the docs leads to a page and a heading that exist", () => {
  for (const [name, text] of htmlOf)
    for (const [, href = ""] of text.matchAll(/ href="([^"]*)"/g))
      if (!/^(?:https:|\/$|\/docs$)/.test(href)) assertLeads(href, name);
});

test("every page of the dashboard has a page of the docs, whose section exists", async () => {
  const routes = await readFile(new URL("../dashboard/routes.tsx", import.meta.url), "utf8");
  const found = Array.from(routes.matchAll(/\b(inRoot|inProject)\.\w+\S*\(\s*"([^"]+)"/g), ([, parent, path = ""]) =>
    parent === "inRoot" ? path : `/projects/$slug/${path}`.replace(/\/+$/, ""),
  );
  assert.ok(found.length > 20);
  for (const route of found) {
    assert.notEqual(docsAbout(route), "/docs", route);
    assertLeads(docsAbout(route), route);
  }
});

test("a found section is shown from the word on, with dots only where text is left out", () => {
  const page = { name: "one", title: "One", lead: "" };
  const found = (text: string) => foundContent([{ ...page, text: `# One\n\n${text}\n` }], "needle").html;
  assert.match(found("A needle at the start."), /<p>A <mark>needle<\/mark> at the start\.<\/p>/);
  assert.match(found(`${"hay ".repeat(100)}needle`), /<p>… hay .*<mark>needle<\/mark><\/p>/);
});

test("the docs run one script, which is named by its hash, and what is searched for is shown as text", async () => {
  const { headers, text } = await api.call("GET", `/docs?q=${encodeURIComponent(`"><img src=x> logs`)}`);
  assert.match(
    headers.get("content-security-policy") ?? "",
    /^default-src 'none'; script-src 'sha256-[\w+/=]+'; style-src 'sha256-/,
  );
  assert.ok(text.includes("&quot;&gt;&lt;img src=x&gt; logs") && !text.includes("<img"));
  assert.ok(
    (await api.call("GET", "/docs?q=maintenance+page")).text.includes("/docs/applications#the-maintenance-page"),
  );
  assert.equal((await api.call("GET", "/docs/..%2Fpackage.json")).status, 404);
});

test("a model gets the list of all pages, a sentence about each, and each as it is written", async () => {
  const { text } = await api.call("GET", "/llms.txt");
  for (const page of pages) {
    const [, path = "", lead] = new RegExp(`\\(\\S+?(/docs/${page.name}\\.md)\\): (.*)`).exec(text) ?? [];
    assert.match(lead ?? "", /\.$/, page.name);
    assert.equal((await api.call("GET", path)).text, page.text);
  }
});
