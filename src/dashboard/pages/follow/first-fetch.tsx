import { Link } from "@tanstack/react-router";
import { LoaderCircle } from "lucide-react";
import { useAction, useCall } from "../../data/api.ts";
import { Button, buttonLook } from "../../ui/button.tsx";
import { Problem, Empty, View } from "../../ui/page.tsx";
import { Mono, Plain } from "../../ui/text.tsx";

/** Shown while the first commit of the followed branch has not come. The page shows its deployment by itself. */
export function FirstFetch({ slug }: { readonly slug: string }) {
  // A fetch that fails is not in the stream of changes.
  const followed = useCall("follow.get", { params: { slug } }, { pollMs: 3000 });
  const fetch = useAction("follow.fetch");
  return (
    <View of={followed}>
      {({ url, branch, problem }) => (
        <Empty
          icon={<LoaderCircle size={24} className={problem === null ? "animate-spin text-busy" : "text-faint"} />}
          title={problem === null ? "Fetching the first commit" : "The first commit could not be fetched"}
          action={
            problem !== null && (
              <span className="flex flex-wrap gap-2">
                <Button row="follow.fetch" busy={fetch.isPending} onClick={() => fetch.mutate({ params: { slug } })}>
                  Fetch now
                </Button>
                <Link to="/projects/$slug/settings" params={{ slug }} className={buttonLook("plain")}>
                  Access and deploy key
                </Link>
              </span>
            )
          }
        >
          <span className="wrap-anywhere">
            <Mono>{branch}</Mono> of <Mono>{url}</Mono>.{" "}
          </span>
          {problem === null ? "This page shows the deployment as soon as it begins." : <Plain>{problem}</Plain>}
          {fetch.error !== null && <Problem error={fetch.error} />}
        </Empty>
      )}
    </View>
  );
}
