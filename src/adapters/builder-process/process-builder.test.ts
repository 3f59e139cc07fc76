import { builderSuite } from "../../ports/builder.suite.ts";
import { makeTestBuilder } from "./test-builder.ts";

builderSuite("the process builder", makeTestBuilder);
