import type { Project } from "../../data/api.ts";
import { MissingVariables, useMissing } from "../env/missing.tsx";
import { FirstFetch } from "../follow/first-fetch.tsx";
import { FirstDeployment } from "./first-deployment.tsx";

interface NoneServesProps {
  readonly project: Project;
  readonly hasBuilds: boolean;
}

/** How to deploy, while nothing serves. After a push that failed, what the source lacks comes first. */
export function NoneServes({ project, hasBuilds }: NoneServesProps) {
  const { slug } = project;
  const missing = useMissing(slug);
  if (project.follows && !hasBuilds) return <FirstFetch slug={slug} />;
  if (missing.isLoading) return <div aria-busy="true" />;
  return (
    <>
      <MissingVariables slug={slug} />
      <FirstDeployment project={project} isAgain={hasBuilds} />
    </>
  );
}
