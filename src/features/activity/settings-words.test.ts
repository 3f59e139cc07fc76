import assert from "node:assert/strict";
import { test } from "node:test";
import { settingsWords } from "./settings-words.ts";

const words = (before: Record<string, unknown>, after: Record<string, unknown>) =>
  settingsWords({ changed: Object.keys(after), before, after });

test("a changed setting is named with its value before and after", () => {
  assert.equal(words({ port: null }, { port: 3000 }), "port unset → 3000");
  assert.equal(
    words({ sleep_after_minutes: 30, storage: true }, { sleep_after_minutes: null, storage: false }),
    "sleeps after 30 min → never, storage folder on → off",
  );
  assert.equal(
    words({ previews: null }, { previews: ["a", "b", "c", "d"] }),
    "branches with previews none → a b c and 1 more",
  );
  assert.equal(
    words({ agents: "deploy" }, { agents: "preview" }),
    "tokens in approval mode deploy to this project → previews only",
  );
  assert.equal(words({ root: "x".repeat(80) }, { root: "apps/web" }), `root folder ${"x".repeat(59)}… → apps/web`);
});

test("an entry of an earlier version names its settings only", () => {
  assert.equal(settingsWords({ changed: ["port", "health_path"], before: { port: 1 } }), "port, health path");
  assert.equal(settingsWords({}), "");
});
