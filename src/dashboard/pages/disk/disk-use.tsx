import { useCall, useWhyNot } from "../../data/api.ts";
import { bytes } from "../../data/format.ts";
import { DialogButton } from "../../ui/button.tsx";
import { Section, View } from "../../ui/page.tsx";
import { Status } from "../../ui/text.tsx";
import { LimitsDialog } from "./limits-dialog.tsx";

/** Shows how much disk a project uses of its limits, which the operator can change here. */
export function DiskUse({ slug }: { readonly slug: string }) {
  const disk = useCall("disk.get", { params: { slug } });
  const maySet = useWhyNot("disk.limits") === undefined;
  return (
    <Section
      title="Disk"
      actions={maySet && <DialogButton dialog={<LimitsDialog slug={slug} />}>Change the limits</DialogButton>}
    >
      <View of={disk}>
        {({ storage, database, images, backups }) => (
          <ul className="grid grid-cols-2 gap-x-6 gap-y-5 rounded-md border border-line p-5 lg:grid-cols-4">
            <Share label="Storage folder" {...storage} />
            <Share label="Database" {...database} />
            <Share label="Images, repository and caches" {...images} access="open" />
            <Share label="Backups on the platform's disk" {...backups} access="open" />
          </ul>
        )}
      </View>
    </Section>
  );
}

interface ShareProps {
  readonly label: string;
  readonly used_bytes: number | null;
  readonly limit_bytes: number;
  readonly access: "open" | "read_only" | "closed";
}

function Share({ label, used_bytes: used, limit_bytes: limit, access }: ShareProps) {
  const share = used === null ? 0 : Math.min(1, used / limit);
  const tone = share > 0.95 ? "bg-bad" : share > 0.8 ? "bg-warn" : "bg-accent";
  return (
    <li className="flex flex-col">
      <p className="flex flex-1 flex-wrap items-baseline justify-between gap-x-3 text-xs text-faint">
        {label}
        {access !== "open" && <Status tone="bad">{access === "closed" ? "Closed" : "Read only"}</Status>}
      </p>
      <div aria-hidden className="mt-2 h-1.5 shrink-0 overflow-hidden rounded-full bg-selected">
        <div
          className={`h-full rounded-full ${tone}`}
          style={{ width: `${Math.max(share * 100, used === null || used === 0 ? 0 : 1)}%` }}
        />
      </div>
      <p className="mt-2 text-xs text-muted">
        {used === null ? `up to ${bytes(limit)}` : `${bytes(used)} of ${bytes(limit)}`}
      </p>
    </li>
  );
}
