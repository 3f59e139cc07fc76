import { runtimeSuite } from "../../ports/runtime.suite.ts";
import { makeGround } from "./test-ground.ts";

runtimeSuite("the process runtime", async () => {
  const ground = await makeGround();
  return { runtime: await ground.open(), makeImage: ground.makeImage, reopen: () => ground.open(), close: ground.close };
});
