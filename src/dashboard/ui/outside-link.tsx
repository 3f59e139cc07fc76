import type { ReactNode } from "react";
import { webAddress } from "../data/web-address.ts";
import { Mono } from "./text.tsx";

interface OutsideLinkProps {
  /** May be another system's answer. */
  readonly url: string;
  readonly title?: string;
  readonly className: string;
  /** Default: the address. */
  readonly children?: ReactNode;
}

/** A link that opens in another tab; the text alone if a browser must not follow the address. */
export function OutsideLink({ url, children, ...look }: OutsideLinkProps) {
  return (
    <a href={webAddress(url)} target="_blank" rel="noreferrer" {...look}>
      {children ?? <Mono>{url.replace(/^https?:\/\//, "")}</Mono>}
    </a>
  );
}
