import { closeInheritedDescriptors } from "../kit/inherited-descriptors.ts";

closeInheritedDescriptors();
const { runBerthd } = await import("./run-berthd.ts");
void runBerthd(process.argv.slice(2));
