import { useCall } from "../../data/api.ts";
import { count, plural } from "../../data/format.ts";
import type { OverviewProject } from "../../frame/stand.ts";

const width = 96;
const height = 20;

/** Requests of the last hour, errors in red; the number for those who do not see the line. */
export function Sparkline({ project }: { readonly project: OverviewProject }) {
  const { requests, errors } = project.last_hour;
  const { data } = useCall(
    "metrics.get",
    { params: { slug: project.slug }, query: { range: "1h" } },
    { enabled: requests > 0 },
  );
  if (requests === 0) return <span className="text-faint">no requests</span>;
  const buckets = data?.buckets ?? [];
  const most = Math.max(1, ...buckets.map((bucket) => bucket.requests));
  const step = width / Math.max(1, buckets.length);
  const label = `${plural(requests, "request")}, ${plural(errors, "error")} in the last hour`;
  return (
    <span className="flex items-center gap-2.5" title={label}>
      <svg width={width} height={height} role="img" aria-label={label} className="shrink-0">
        <line x1="0" x2={width} y1={height - 0.5} y2={height - 0.5} className="stroke-line" />
        {buckets.map(({ at, requests: all, errors: bad }, index) => (
          <g key={at}>
            <rect
              x={index * step}
              width={Math.max(1, step - 0.5)}
              y={height - (all / most) * height}
              height={(all / most) * height}
              className="fill-accent"
            />
            <rect
              x={index * step}
              width={Math.max(1, step - 0.5)}
              y={height - (bad / most) * height}
              height={(bad / most) * height}
              className="fill-bad"
            />
          </g>
        ))}
      </svg>
      <span className="w-12 text-right text-muted">{count(requests)}</span>
    </span>
  );
}
