import { Link } from "@tanstack/react-router";
import { ArrowRight } from "lucide-react";
import { useCall } from "../../data/api.ts";
import { firstLine, shortCommit } from "../../data/format.ts";
import { State } from "../../ui/status.tsx";
import { Mono, Plain } from "../../ui/text.tsx";

/** Shows the push that is being built, with a link to watch it. */
export function Running({ slug }: { readonly slug: string }) {
  const { data } = useCall("builds.list", { params: { slug } });
  const build = data?.builds.find(({ status }) => status === "queued" || status === "running");
  return (
    <div role="status" className="empty:hidden">
      {build !== undefined && (
        <Link
          to="/projects/$slug/builds/$id"
          params={{ slug, id: build.id }}
          className="flex items-center gap-3 rounded-md border border-busy/40 bg-busy/7 px-4 py-3 text-sm hover:bg-busy/12"
        >
          <State of={build.status} word={build.status === "queued" ? "Queued" : "Building"} />
          <Mono>{`${build.branch}@${shortCommit(build.commit)}`}</Mono>
          <span className="min-w-0 flex-1 truncate">
            <Plain>{firstLine(build.message)}</Plain>
          </span>
          <span className="inline-flex items-center gap-1 font-medium text-busy">
            Watch <ArrowRight aria-hidden size={14} />
          </span>
        </Link>
      )}
    </div>
  );
}
