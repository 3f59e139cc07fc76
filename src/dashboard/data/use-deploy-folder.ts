import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import type { Client } from "../../contract/client.ts";
import { keptByBerthignore, walkSource } from "../../contract/source-rules.ts";
import { call, useClient } from "./api.ts";
import { bytes, plural } from "./format.ts";
import type { LocalFolder } from "./folder.ts";
import { tarOf, type TarMember } from "./tar.ts";

interface DeployFolder {
  /** What happens now, in words; undefined when idle. */
  readonly step: string | undefined;
  readonly error: Error | null;
  /** Undefined: what was dropped or chosen holds no folder with files. */
  deploy(folder: LocalFolder | undefined): void;
}

/** Uploads a folder's files like `berth deploy --dir`, then shows the build. `projectFor` finds or creates the project and returns its slug. */
export function useDeployFolder(projectFor: (folder: LocalFolder) => Promise<string>): DeployFolder {
  const client = useClient();
  const navigate = useNavigate();
  const [step, setStep] = useState<string>();
  const [error, setError] = useState<Error | null>(null);
  const run = async (folder: LocalFolder | undefined) => {
    setError(null);
    try {
      if (folder === undefined) throw new Error("This is not a folder with files. Choose the application's folder.");
      setStep(`Reading ${folder.name}`);
      const members = await membersOf(folder);
      const sizeBytes = members.reduce((sum, { content }) => sum + content.size, 0);
      setStep(`Sending ${plural(members.length, "file")}, ${bytes(sizeBytes)}`);
      const slug = await projectFor(folder);
      const id = await send(client, { slug, name: folder.name }, members);
      await navigate({ to: "/projects/$slug/builds/$id", params: { slug, id } });
    } catch (fault) {
      setError(fault as Error);
    }
    setStep(undefined);
  };
  return { step, error, deploy: (folder) => void run(folder) };
}

async function membersOf(folder: LocalFolder): Promise<TarMember[]> {
  const paths = keptByBerthignore(await walkSource(folder), await folder.text(".berthignore"));
  if (paths.length === 0) throw new Error("The folder holds no file to deploy, or its ignore files name all of them.");
  const members: TarMember[] = [];
  for (const path of paths) {
    const content = await folder.file(path);
    // Browsers don't report which files are executable; scripts begin with these two characters.
    const executable = (await content.slice(0, 2).text()) === "#!";
    members.push({ path, content, executable });
  }
  return members;
}

async function send(
  client: Client,
  { slug, name }: { readonly slug: string; readonly name: string },
  members: readonly TarMember[],
): Promise<string> {
  const packed = tarOf(members).stream().pipeThrough(new CompressionStream("gzip"));
  const upload = await new Response(packed).blob();
  const query = { message: `Upload of the folder ${name}`.slice(0, 200) };
  return (await call(client, "builds.upload", { params: { slug }, query, upload })).build_id;
}
