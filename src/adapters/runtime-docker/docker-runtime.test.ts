import assert from "node:assert/strict";
import { describe } from "node:test";
import { withoutDocker } from "../../../test/support/docker-engine.ts";
import { runsAll } from "../../../test/support/draw-cases.ts";
import { runtimeSuite } from "../../ports/runtime.suite.ts";
import { makeContainers } from "../../../test/support/containers.ts";

// Drawn with other container files: what a runtime and a builder promise is shown by those of processes in every run.

describe("a Docker engine", { skip: withoutDocker }, () => {
  runtimeSuite("the Docker runtime", () => makeContainers());
});

// Takes as long as the suite above, too long for a usual run.
const withoutAll = !runsAll && "SKIPPED: a second Docker engine takes minutes; npm test -- --all runs it";

describe("a Docker engine with user namespaces", { skip: withoutDocker || withoutAll }, () => {
  runtimeSuite("the Docker runtime with user namespaces", async () => {
    const containers = await makeContainers({ "userns-remap": "default" });
    const { isolation } = await containers.runtime.describe();
    assert.ok(isolation.includes("user_namespace"), "the engine maps the users of its containers");
    return containers;
  });
});
