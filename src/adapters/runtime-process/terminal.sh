# The session of a terminal that script(1) made inside the sandbox. Its parameters are columns, rows and the user's command line. Sizes that come
# later are lines of descriptor 3. A background command of a shell without job control ignores Ctrl-C, so the loop outlives it.
stty columns "$1" rows "$2"
while read -r columns rows <&3; do stty columns "$columns" rows "$rows" </dev/tty; done &
exec 3<&-
exec /bin/sh -c "$3"
