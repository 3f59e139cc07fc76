import assert from "node:assert/strict";
import { test } from "node:test";
import { cliUser } from "../../test/support/cli.ts";
import { goodToken, startScriptedPlatform } from "../../test/support/scripted-platform.ts";

const modified_at = "2026-01-31T09:00:00.000Z";

test("berth disk lists a folder, and gets a file part by part", async () => {
  const folders: (string | null)[] = [];
  const content = "in three parts";
  await using platform = await startScriptedPlatform({
    "disk.files": ({ query }) => {
      folders.push(query.get("path"));
      return { files: [{ name: "photo.jpg", kind: "file", size_bytes: 2048, modified_at }], next_cursor: null };
    },
    "disk.read": ({ query }) => {
      const offset = Number(query.get("offset"));
      const next = offset + 5;
      const base64 = Buffer.from(content.slice(offset, next)).toString("base64");
      return { base64, next_offset: next < content.length ? next : null };
    },
  });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const berth = (...args: string[]) => user.berth(["disk", ...args, "-p", "demo"]);
  assert.match((await berth("files", "uploads")).stdout, /photo\.jpg +file +2\.0 KiB/);
  await berth("files");
  assert.deepEqual(folders, ["uploads", null]);
  assert.equal((await berth("get", "notes.txt")).stdout, content);
});
