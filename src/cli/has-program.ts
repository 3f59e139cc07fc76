import { access, constants } from "node:fs/promises";
import { delimiter, join } from "node:path";
import type { Environment } from "./environment.ts";

/** Returns whether the user's PATH has this program. */
export async function hasProgram({ childEnvironment }: Environment, name: string): Promise<boolean> {
  const folders = (childEnvironment["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "");
  const found = await Promise.all(
    folders.map((folder) =>
      access(join(folder, name), constants.X_OK).then(
        () => true,
        () => false,
      ),
    ),
  );
  return found.includes(true);
}
