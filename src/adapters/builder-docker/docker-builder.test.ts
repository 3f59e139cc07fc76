import { describe } from "node:test";
import { withoutDocker } from "../../../test/support/docker-engine.ts";
import { builderSuite } from "../../ports/builder.suite.ts";
import { makeTestDockerBuilder } from "./test-docker-builder.ts";

describe("builder-docker", { skip: withoutDocker }, () => {
  builderSuite("the Docker builder", makeTestDockerBuilder);
});
