import { describe } from "node:test";
import { withoutDocker } from "../../../test/support/docker-engine.ts";
import { runtimeSuite } from "../../ports/runtime.suite.ts";
import { makeContainers } from "./test-containers.ts";

describe("a Docker engine", { skip: withoutDocker }, () => {
  runtimeSuite("the Docker runtime", () => makeContainers());
});
