import { runtimeSuite } from "../../ports/runtime.suite.ts";
import { testParts } from "../../../test/support/sandbox-parts.ts";
import { makeGround } from "../../../test/support/runtime-ground.ts";

/** The suite runs with the strongest sandbox of this machine, and without namespaces. */
function suite(name: string, options: Parameters<typeof makeGround>[0]): void {
  runtimeSuite(name, async () => {
    const ground = await makeGround(options);
    return {
      runtime: await ground.open(),
      makeImage: ground.makeImage,
      reopen: () => ground.open(),
      close: ground.close,
    };
  });
}

suite("the process runtime", {});
suite("the process runtime on the host's own network", { network: "shared" });
suite("the process runtime without bubblewrap", { network: "shared", parts: { ...testParts(), bwrap: null } });
