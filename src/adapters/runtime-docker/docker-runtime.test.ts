import { describe } from "node:test";
import { withoutDocker } from "../../../test/support/docker-engine.ts";
import { runtimeSuite } from "../../ports/runtime.suite.ts";
import { makeContainers } from "./test-containers.ts";

// Drawn with other container files: what a runtime and a builder promise is shown by those of processes in every run.

describe("a Docker engine", { skip: withoutDocker }, () => {
  runtimeSuite("the Docker runtime", () => makeContainers());
});
