package processes

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
)

// errPortTaken says that somebody took a port between our choice of it and its component's start.
var errPortTaken = errors.New("a port was taken meanwhile")

// lowestPort is the lowest port that may be chosen. The kernel takes the ports of outgoing connections from another
// range, which begins at highestPort.
const lowestPort = 10000

// highestPort returns the first port of the range from which the kernel takes ports for outgoing connections. Only
// ports below it are chosen, because one of that range could be in use at any moment.
func highestPort() int {
	const usual = 32768
	b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return usual
	}
	var low, high int
	if _, err := fmt.Sscan(string(b), &low, &high); err != nil || low < 2*lowestPort {
		return usual
	}
	return low
}

// portDraws is the largest number of ports to try.
const portDraws = 1000

// freePorts returns n random ports of the loopback interface, on which nobody listens.
func freePorts(n int) (out []int, err error) {
	var held []net.Listener
	defer func() {
		for _, l := range held {
			err = errors.Join(err, l.Close())
		}
	}()
	top := highestPort()
	var last error
	for range portDraws {
		if len(out) == n {
			return out, nil
		}
		port := lowestPort + rand.IntN(top-lowestPort)
		l, err := net.Listen("tcp", loopback(port))
		if err != nil {
			last = err
			continue
		}
		held, out = append(held, l), append(out, port)
	}
	return nil, fmt.Errorf(
		"there are not %d free ports from %d to %d on loopback, the last one tried: %w",
		n,
		lowestPort,
		top,
		last,
	)
}

// loopback returns the address of a port on the loopback interface.
func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
