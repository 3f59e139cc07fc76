import assert from "node:assert/strict";
import { test } from "node:test";
import { list } from "tar";
import { tarOf } from "./tar.ts";

test("an archive of the browser holds each file with its path, mode and content, however long its name is", async () => {
  const paths = ["a.txt", `${"folder/".repeat(40)}ümlaut.txt`, "x".repeat(100), "y".repeat(101), "empty"];
  const archive = tarOf(
    paths.map((path, index) => ({
      path,
      content: new Blob([`${index}`.repeat(index * 300)]),
      executable: index === 2,
    })),
  );
  const seen: unknown[] = [];
  const reader = list({
    strict: true,
    onReadEntry: (entry) => {
      let content = "";
      entry.on("data", (chunk) => (content += chunk.toString()));
      entry.on("end", () => seen.push([entry.path, entry.mode, content.length, content.slice(0, 1)]));
    },
  });
  reader.end(Buffer.from(await archive.arrayBuffer()));
  assert.deepEqual(
    seen,
    paths.map((path, index) => [path, index === 2 ? 0o755 : 0o644, index * 300, index === 0 ? "" : `${index}`]),
  );
});
