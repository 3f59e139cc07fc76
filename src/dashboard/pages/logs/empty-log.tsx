import type { ReactNode } from "react";
import type { Project } from "../../data/project.ts";
import { Button } from "../../ui/button.tsx";
import { HowToDeploy } from "../projects/how-to-deploy.tsx";

interface EmptyLogProps {
  readonly project: Project;
  readonly isBuild: boolean;
  /** Whether only one process or replica is shown. */
  readonly isFiltered: boolean;
  readonly isRange: boolean;
  readonly onShowAll: () => void;
}

/** Says why a log has no lines, and what to do next. */
export function EmptyLog({ project, isBuild, isFiltered, isRange, onShowAll }: EmptyLogProps) {
  if (isBuild) return <Reason text="There is no build log yet. The next push writes one." />;
  if (isFiltered || isRange)
    return (
      <Reason text={isRange ? "Nothing was printed in this time." : "This process or replica printed nothing."}>
        <Button onClick={onShowAll}>{isFiltered ? "Show all processes" : "Show the newest lines"}</Button>
      </Reason>
    );
  if (project.active_deployment === null)
    return (
      <Reason text="No deployment is live, so nothing is printed.">
        <HowToDeploy slug={project.slug} />
      </Reason>
    );
  return (
    <Reason
      text={`Deployment #${project.active_deployment.number} has printed nothing. What it writes to standard output and error appears here at once.`}
    />
  );
}

function Reason({ text, children }: { readonly text: string; readonly children?: ReactNode }) {
  return (
    <div className="flex flex-col items-start gap-3">
      <p className="max-w-[64ch]">{text}</p>
      {children}
    </div>
  );
}
