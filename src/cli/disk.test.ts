import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { cliUser } from "../../test/support/cli.ts";
import { goodToken, startScriptedPlatform } from "../../test/support/scripted-platform.ts";

const modified_at = "2026-01-31T09:00:00.000Z";

test("berth disk put sends a file with its size and digest, and says how to undo what it replaced", async () => {
  const sent: unknown[] = [];
  await using platform = await startScriptedPlatform({
    "disk.write": ({ query, bytes }) => {
      sent.push([Object.fromEntries(query), bytes.toString()]);
      return { path: "uploads/a.txt", size_bytes: 5, kept: ".restored/x_replaced/a.txt", kept_folder: "x_replaced" };
    },
  });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  await writeFile(join(user.home, "a.txt"), "hello");
  const put = await user.berth(["disk", "put", join(user.home, "a.txt"), "uploads/a.txt", "--replace", "-p", "demo"]);
  assert.match(put.stdout, /Written: uploads\/a\.txt; what was there is in \.restored/);
  assert.match(put.stderr, /berth disk restore uploads\/a\.txt --from x_replaced --replace/);
  const sha256 = createHash("sha256").update("hello").digest("hex");
  assert.deepEqual(sent[0], [{ path: "uploads/a.txt", size_bytes: "5", sha256, replace: "true" }, "hello"]);
});

test("a file to send that cannot be read is named, and nothing is sent", async () => {
  await using platform = await startScriptedPlatform({ "disk.write": () => assert.fail("it was sent") });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  for (const [file, reason] of [
    ["none.jpg", /none\.jpg cannot be read \(ENOENT\)/],
    [".", /\. is not a file/],
  ] as const) {
    for (const command of [
      ["disk", "put", file, "-p", "demo"],
      ["api", "disk.write", "--param", "slug=demo", "--body", `@${file}`],
    ]) {
      const { exitCode, stderr } = await user.berth(command);
      assert.equal(exitCode, 2, stderr);
      assert.match(stderr, reason);
    }
  }
});

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
