import type { Answer } from "../../../contract/client.ts";
import { useAction } from "../../data/api.ts";

export type Template = Answer<"templates.list">["templates"][number];

interface DeployTemplate {
  /** Resolves with the id of the build. */
  readonly deploy: (slug: string, template: Template) => Promise<string>;
  readonly isBusy: boolean;
  readonly error: Error | null;
}

/** Deploys a template in a project without source, with a database if it needs one. */
export function useDeployTemplate(): DeployTemplate {
  const database = useAction("database.create");
  const change = useAction("builds.change");
  return {
    async deploy(slug, { name, files, has_database: hasDatabase }) {
      const params = { slug };
      const isMade = database.isSuccess && database.variables.params.slug === slug;
      if (hasDatabase && !isMade) await database.mutateAsync({ params, body: {} });
      const body = { files: [...files], message: `Template ${name}` };
      return (await change.mutateAsync({ params, body })).build_id;
    },
    isBusy: database.isPending || change.isPending,
    error: database.error ?? change.error,
  };
}
