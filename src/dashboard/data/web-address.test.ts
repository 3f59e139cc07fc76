import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { webAddress } from "./web-address.ts";

test("an address that is not of the web, nor a path of this platform, leads nowhere", () => {
  for (const fine of ["https://git.example.com/1", "HTTP://127.0.0.1:80/", "/docs/people"])
    assert.equal(webAddress(fine), fine);
  for (const other of ["javascript:alert(1)", " javascript:1", "java\nscript:1", "data:text/html,x", "vbscript:x"])
    assert.equal(webAddress(other), undefined, other);
  for (const other of ["//evil.example", "/\\evil.example", "ftp://a", "mailto:a@b", "https:evil", ""])
    assert.equal(webAddress(other), undefined, other);
});

test("every link to an address that is not written in the page itself is an OutsideLink", () => {
  const folder = join(import.meta.dirname, "..");
  const links = globSync("**/*.tsx", { cwd: folder }).flatMap((file) => {
    const found = readFileSync(join(folder, file), "utf8").matchAll(
      /<(?:a|area|iframe|form|base)\b[^>]*?(?:href|src|action)=(.{0,3})/gs,
    );
    return [...found].map(([, value = ""]) => ({ file, value }));
  });
  assert.ok(links.length > 3);
  const others = links.filter(({ value }) => !/^(?:"[#/]|\{`\/)/.test(value));
  assert.deepEqual(others, [{ file: "ui/outside-link.tsx", value: "{we" }]);
});
