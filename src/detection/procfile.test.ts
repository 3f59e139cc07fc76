import assert from "node:assert/strict";
import { test } from "node:test";
import { BuildRefused } from "./failures.ts";
import { fileOf, parseProcfile, withCommands } from "./procfile.ts";

test("every line is a process type, but for the release command", () => {
  const text =
    "# how it runs\r\nweb: node server.js --port $PORT\n\nrelease: npm run migrate: all\nworker: node worker.js\n";
  assert.deepEqual(parseProcfile(text), {
    web: "node server.js --port $PORT",
    release: "npm run migrate: all",
    others: { worker: "node worker.js" },
  });
});

test("an empty Procfile declares nothing", () => {
  assert.deepEqual(parseProcfile("\n# nothing\n"), { web: null, release: null, others: {} });
});

for (const [text, why] of [
  ["web node server.js", /Line 1 .* not `<process>: <command>`/],
  ["\nweb:   ", /Line 2 .* no command/],
  ["web: a\nweb: b", /Line 2 .* twice/],
  [`${"x".repeat(33)}: a`, /Line 1 .* longer than 32/],
  [Array.from({ length: 17 }, (_, index) => `p${index}: a`).join("\n"), /more than 16/],
] as const) {
  test(`a broken line is refused with its number: ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => parseProcfile(text),
      (error) => error instanceof BuildRefused && error.code === "procfile_invalid" && why.test(error.message),
    );
  });
}

test("the file that a command starts is known where no shell is needed to tell", () => {
  assert.equal(fileOf("./bin/app --port $PORT"), "bin/app");
  assert.equal(fileOf("exec NODE_ENV=production node dist/main"), "dist/main");
  assert.equal(fileOf("/app/serve.sh"), "serve.sh");
  for (const command of [
    "gunicorn app:app",
    "cd web && ./run",
    "node --import ./x.js y.js",
    "$RUN",
    "/bin/sh x",
    "../x",
  ])
    assert.equal(fileOf(command), null, command);
});

test("the settings' process types count with those of the Procfile", () => {
  const types = (name: string, count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`${name}${index}`, "x"]));
  const own = { web: null, release: null, others: types("a", 10) };
  assert.equal(Object.keys(withCommands(own, { processes: types("b", 6) }).others).length, 16);
  assert.throws(() => withCommands(own, { processes: types("b", 7) }), /together declare more than 16/);
});
