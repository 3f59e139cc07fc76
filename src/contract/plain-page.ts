/**
 * Styles of pages that need no script: decision pages and the edge's own pages. Colours and type match the dashboard. Nothing is loaded, so
 * visitors see the dashboard's font only if it is installed. Fonts are named one by one, because `system-ui` is a serif on some Linux desktops.
 */
export const plainPageStyle = `:root{color-scheme:light dark;--bg:light-dark(oklch(.993 .002 210),oklch(.168 .007 220));--panel:light-dark(oklch(.974 .004 210),oklch(.192 .008 220));--line:light-dark(oklch(.915 .006 210),oklch(.278 .011 220));--text:light-dark(oklch(.215 .012 220),oklch(.945 .004 210));--muted:light-dark(oklch(.445 .014 220),oklch(.745 .011 215));--accent:light-dark(oklch(.495 .092 205),oklch(.775 .108 200));--on-accent:light-dark(oklch(.995 0 0),oklch(.185 .03 210));--bad:light-dark(oklch(.525 .195 27),oklch(.735 .15 25))}
*{box-sizing:border-box}
body{margin:0 auto;max-width:44rem;padding:12vh 1.5rem 3rem;background:var(--bg);color:var(--text);font:15px/1.6 "Geist Variable",Geist,-apple-system,"Segoe UI",Roboto,"Helvetica Neue","Noto Sans","Liberation Sans",Arial,sans-serif;font-variant-numeric:tabular-nums;-webkit-font-smoothing:antialiased}
h1{margin:0 0 .5rem;font-size:1.375rem;line-height:1.3;font-weight:600;letter-spacing:-.01em}
p{margin:0;max-width:60ch;color:var(--muted)}
code,pre{font-family:"Geist Mono Variable","Geist Mono",ui-monospace,Menlo,Consolas,"Liberation Mono",monospace;font-size:.9em}
`;
