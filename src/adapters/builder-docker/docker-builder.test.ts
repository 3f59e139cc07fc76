import { describe } from "node:test";
import { withoutDocker } from "../../../test/support/docker-engine.ts";
import { builderSuite } from "../../ports/builder.suite.ts";
import { makeTestDockerBuilder } from "../../../test/support/docker-builder.ts";

// Drawn with other container files: what a runtime and a builder promise is shown by those of processes in every run.

describe("builder-docker", { skip: withoutDocker }, () => {
  builderSuite("the Docker builder", makeTestDockerBuilder);
});
