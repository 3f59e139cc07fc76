import { useSlug } from "../../data/api.ts";
import { Page } from "../../ui/page.tsx";
import { Runs } from "../runs/runs.tsx";
import { Processes } from "./processes.tsx";

export function ProcessesPage() {
  const slug = useSlug();
  return (
    <Page title="Processes">
      <Processes slug={slug} />
      <Runs slug={slug} />
    </Page>
  );
}
