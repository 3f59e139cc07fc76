import { Link } from "@tanstack/react-router";
import { useCall } from "../../data/api.ts";
import { firstLine } from "../../data/format.ts";
import type { Project } from "../../data/project.ts";
import { Plain } from "../../ui/text.tsx";
import { FailureBox } from "../builds/failure-box.tsx";

/** Shows why the newest push or deployment failed; nothing if it did not. */
export function LastFailure({ project }: { readonly project: Project }) {
  const { slug, active_deployment: active } = project;
  const builds = useCall("builds.list", { params: { slug } });
  const deployments = useCall("deployments.list", { params: { slug } });
  const build = builds.data?.builds[0];
  const deployment = deployments.data?.deployments[0];
  if (build === undefined || deployments.data === undefined) return null;
  const isNewer = deployment === undefined || build.created_at > deployment.created_at;
  const failure = isNewer ? build.failure : deployment.failure;
  if (failure === null) return null;
  const id = isNewer ? build.id : deployment.build_id;
  const message = builds.data?.builds.find((each) => each.id === id)?.message;
  return (
    <FailureBox failure={{ ...failure, log_tail: [] }}>
      <p className="text-sm">
        {isNewer ? `Build ${build.number}` : `Deployment #${deployment.number}`}
        {message !== undefined && (
          <>
            {" "}
            “<Plain>{firstLine(message)}</Plain>”
          </>
        )}
        {active === null ? ". " : `; #${active.number} still serves. `}
        <Link
          to="/projects/$slug/builds/$id"
          params={{ slug, id }}
          className="font-medium text-accent underline underline-offset-2"
        >
          Log and details
        </Link>
      </p>
    </FailureBox>
  );
}
