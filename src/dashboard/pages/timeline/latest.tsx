import { Link } from "@tanstack/react-router";
import { useCall } from "../../data/api.ts";
import { foldEntries } from "../../data/fold-entries.ts";
import { EntryList } from "../../ui/entries.tsx";
import { Section, View } from "../../ui/page.tsx";

const read = 20;
const shown = 6;

/** Shows the newest events of a project, with the way to all of them. */
export function Latest({ slug }: { readonly slug: string }) {
  const timeline = useCall("timeline.list", { params: { slug }, query: { limit: read } });
  return (
    <Section
      title="What happened last"
      actions={
        <Link
          to="/projects/$slug/timeline"
          params={{ slug }}
          className="text-sm text-accent underline underline-offset-2"
        >
          Whole timeline
        </Link>
      }
    >
      <View of={timeline}>{(data) => <EntryList entries={foldEntries(data.timeline).slice(0, shown)} />}</View>
    </Section>
  );
}
