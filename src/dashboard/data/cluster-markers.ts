export interface Marker {
  /** Seconds since 1970. */
  readonly at: number;
  readonly number: number;
}

/** Deployments that are too close in a chart to be drawn apart, oldest first, with the places of the first and the last one. */
export interface Cluster {
  readonly from: number;
  readonly to: number;
  readonly markers: readonly Marker[];
}

/** Groups markers by their place in a chart: each group is narrower than `width`. */
export function clusterMarkers(
  markers: readonly Marker[],
  placeOf: (marker: Marker) => number,
  width: number,
): readonly Cluster[] {
  const clusters: Cluster[] = [];
  for (const marker of markers.toSorted((a, b) => a.at - b.at)) {
    const place = placeOf(marker);
    const last = clusters.at(-1);
    if (last === undefined || place - last.from >= width) clusters.push({ from: place, to: place, markers: [marker] });
    else clusters[clusters.length - 1] = { ...last, to: place, markers: [...last.markers, marker] };
  }
  return clusters;
}

/** `#7`, `#3–7`; `5 deploys` where others lie between them. */
export function clusterLabel({ markers }: Cluster): string {
  const numbers = markers.map(({ number }) => number);
  const [least, most] = [Math.min(...numbers), Math.max(...numbers)];
  if (numbers.length === 1) return `#${least}`;
  return most - least === numbers.length - 1 ? `#${least}–${most}` : `${numbers.length} deploys`;
}
