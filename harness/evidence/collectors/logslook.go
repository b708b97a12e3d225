package collectors

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

const (
	// podLogs is the folder in which the container runtime writes its containers' logs, as the kubelet tells it.
	podLogs = "/var/log/pods"
	// lookBytes is the most bytes of one component that one poll reads, so that a large backlog comes in pieces.
	lookBytes = 4 << 20
)

// lookScript prints what is new in the log files of components. Its arguments are the folder of all logs, the most
// bytes of a component, the namespace of the pods, the known files, and the components. Known files are lines of
// "component first-time offset". The offset "done" stands for a compressed file that was read to its end, which can't
// grow.
//
// A file is known by the time of its first line, which has nanoseconds. Its name changes when the kubelet rotates it,
// its inode changes when it is compressed, and another file may get an old inode. Each file is opened once and then
// read through that descriptor, so that a rename in between can't pass another file off as this one. A file that isn't
// what it was when listed is left to the next poll.
//
// For each file, by component and age, there is a line "F component first-time offset size n path", followed by n bytes
// and a newline. A file that is done has a line "D component first-time path", and a file that can't be read "U
// component path why". The last line is "E".
//
// Names are listed again until none has changed in between, five times at most. If a file turns out to be another one,
// nothing more of its component is read, so that lines come in order.
const lookScript = `export LC_ALL=C
root=$1 most=$2 pods=$3 known="
$4
"
shift 4
names() {
	for c in "$@"; do echo "$root"/"$pods"_"$c"-*/"$c"/*.log "$root"/"$pods"_"$c"-*/"$c"/*.log.*; done
}
first() {
	{
		case $2 in
		*.gz) h=$(gzip -dc <"$1" | head -c 40) ;;
		*) h=$(head -c 40 "$1") ;;
		esac
	} 2>/dev/null
	case $h in
	????-??-??T??:??:??*\ *) echo "${h%% *}" ;;
	*) echo - ;;
	esac
}
files() {
	for c in "$@"; do
		for f in "$root"/"$pods"_"$c"-*/"$c"/*.log "$root"/"$pods"_"$c"-*/"$c"/*.log.*; do
			case $f in *.tmp) continue ;; esac
			if [ -s "$f" ]; then echo "$c $(first "$f" "$f") ${f#"$root"/}"; fi
		done
	done
}
for try in 1 2 3 4 5; do
	before=$(names "$@")
	all=$(files "$@")
	if [ "$before" = "$(names "$@")" ]; then break; fi
done
echo "$all" | sort -k 1,1 -k 2,2 -k 3,3 | {
	last= of=
	while read -r c t f; do
		if [ -z "$c" ] || [ "$c $t" = "$last" ]; then continue; fi
		if [ "$c" != "$of" ]; then of=$c left=$most; fi
		if [ "$t" = - ]; then
			if [ -s "$root/$f" ]; then echo "U $c $f begins with no time of the container runtime"; fi
			continue
		fi
		last="$c $t"
		off=${known#*"
$c $t "}
		if [ "$off" = "$known" ]; then off=0; else off=${off%%"
"*}; fi
		if [ "$off" = done ]; then echo "D $c $t $f"; continue; fi
		it=
		{
			if [ "$(first /dev/fd/3 "$f")" = "$t" ]; then
				it=$f
				case $f in
				*.gz)
					if gzip -t </dev/fd/3; then size=$(gzip -dc </dev/fd/3 | wc -c); else echo "U $c $f is no whole gzip file"; continue; fi
					;;
				*) size=$(stat -L -c %s /dev/fd/3) ;;
				esac
				n=$((size - off))
				if [ "$n" -lt 0 ]; then n=0; fi
				if [ "$n" -gt "$left" ]; then n=$left; fi
				left=$((left - n))
				echo "F $c $t $off $size $n $f"
				if [ "$n" -gt 0 ]; then
					case $f in
					*.gz) gzip -dc </dev/fd/3 | tail -c +$((off + 1)) | head -c "$n" ;;
					*) tail -c +$((off + 1)) /dev/fd/3 | head -c "$n" ;;
					esac
				fi
				echo
			fi
		} 2>/dev/null 3<"$root/$f"
		if [ -z "$it" ]; then left=0 last=; fi
	done
	echo E
}
`

// poll reads what is new in the files, and reports whether there is more.
func (l *logReader) poll(ctx context.Context) (more bool, err error) {
	var known []string
	argv := []string{"sh", "-c", lookScript, "sh", l.root, strconv.Itoa(lookBytes), l.namespace, ""}
	for _, c := range l.logs {
		known = append(known, c.knownFiles()...)
		argv = append(argv, c.name)
	}
	argv[7] = strings.Join(known, "\n")
	asked := time.Now()
	out, err := l.run(ctx, argv...)
	if err != nil {
		return false, err
	}
	for _, c := range l.logs {
		c.begin()
	}
	in := bufio.NewReader(bytes.NewReader(out))
	for {
		ended, err := l.frame(in)
		if err != nil {
			return false, fmt.Errorf(
				"reading log files: the node printed what the script can't: %w",
				err,
			)
		}
		if ended {
			break
		}
	}
	for _, c := range l.logs {
		more = c.settle(asked) || more
	}
	return more, nil
}

// frame reads what is printed about one file, and reports whether the output has ended.
func (l *logReader) frame(in *bufio.Reader) (ended bool, err error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return false, fmt.Errorf("%q: %w", line, io.ErrUnexpectedEOF)
	}
	line = strings.TrimSuffix(line, "\n")
	f := strings.Fields(line)
	if line == "E" {
		return true, nil
	}
	bad := fmt.Errorf("%q", line)
	if len(f) < 4 {
		return false, bad
	}
	var c *componentLog
	for _, one := range l.logs {
		if one.name == f[1] {
			c = one
		}
	}
	switch {
	case c == nil:
		return false, bad
	case f[0] == "U":
		c.unread = strings.Join(f[2:], " ")
		return false, nil
	case f[0] == "D" && len(f) == 4:
		return false, c.saw(f[2], f[3])
	case f[0] != "F" || len(f) != 7:
		return false, bad
	}
	var n [3]int64 // offset, size, length
	for i := range n {
		if n[i], err = strconv.ParseInt(f[3+i], 10, 64); err != nil || n[i] < 0 || i == 2 && n[i] > lookBytes {
			return false, bad
		}
	}
	data := make([]byte, n[2]+1)
	if _, err := io.ReadFull(in, data); err != nil {
		return false, fmt.Errorf("%q and what is left of it: %w", line, err)
	}
	if data[n[2]] != '\n' {
		return false, fmt.Errorf("%q and no newline after it", line)
	}
	if err := c.saw(f[2], f[6]); err != nil {
		return false, err
	}
	return false, c.take(f[2], n[0], n[1], data[:n[2]])
}
