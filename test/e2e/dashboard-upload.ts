import { createClient, type Client } from "../../src/contract/client.ts";
import { eventually } from "../support/eventually.ts";
import { tarOf } from "../support/tar.ts";
import type { TestPlatform } from "./platform.ts";

export const clientOf = ({ api, token }: Pick<TestPlatform, "api" | "token">): Client =>
  createClient({ baseUrl: api, token });

/** Uploads files to a project, as `berth deploy --dir` does, and returns the build's id while the build runs. */
export async function upload(client: Client, slug: string, files: Record<string, string>): Promise<string> {
  const members = Object.entries(files).map(([path, text]) => ({ path, text }));
  const archive = new Uint8Array(tarOf(...members));
  const query = { message: "Uploaded files" };
  return (await client.call("builds.upload", { params: { slug }, query, upload: archive })).build_id;
}

/** Waits until a build's deployment is live; throws if it fails. */
export async function untilServing(client: Client, id: string): Promise<void> {
  const isLive = async () => {
    const { status, deployment, failure } = await client.call("builds.get", { params: { id } });
    if (failure !== null || deployment?.status === "failed") throw new Error(`build ${id}: ${JSON.stringify(failure)}`);
    return status === "succeeded" && deployment?.status === "active";
  };
  await eventually(isLive, "the files are deployed");
}
