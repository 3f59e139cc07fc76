import assert from "node:assert/strict";
import { test } from "node:test";
import { cliUser } from "../../test/support/cli.ts";
import { goodToken, startScriptedPlatform } from "../../test/support/scripted-platform.ts";

test("berth logs --counts shows a row for each part of the range, with the filters of its options", async () => {
  const queries: unknown[] = [];
  await using platform = await startScriptedPlatform({
    "logs.counts": ({ query }) => {
      queries.push({ ...Object.fromEntries(query), field: query.getAll("field") });
      return {
        ...{ from: "2026-01-31T09:00:00.000Z", until: "2026-01-31T09:02:00.000Z", part_seconds: 60 },
        ...{ lines: 45, errors: 2, warnings: 1 },
        parts: [
          { at: "2026-01-31T09:00:00.000Z", lines: 40, errors: 2, warnings: 0 },
          { at: "2026-01-31T09:01:00.000Z", lines: 5, errors: 0, warnings: 1 },
        ],
      };
    },
  });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const counts = (...more: string[]) => user.berth(["logs", "-p", "demo", "--counts", ...more]);
  const { stdout, exitCode } = await counts(
    "--since",
    "2h",
    "--field",
    "status=500",
    "--field",
    "a=b",
    "--process",
    "worker",
  );
  assert.equal(exitCode, 0);
  assert.deepEqual(queries, [{ since: "2h", field: ["status=500", "a=b"], process: "worker" }]);
  assert.match(stdout, /09:00:00Z +40 +2 +0 +█{40}\n.*09:01:00Z +5 +0 +1 +█{5}$/m);
  const both = await user.berth(["logs", "-p", "demo", "-f", "--until", "2026-01-31T09:00:00Z"]);
  assert.match(both.stderr, /--follow and --until cannot be combined/);
  const wrong = await counts("-f");
  assert.match(wrong.stderr, /leave out --follow and --lines/);
  assert.match((await counts("--source", "build")).stderr, /no time to count them by/);
});
