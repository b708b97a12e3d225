package processes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
)

// In a pod, a component whose memory is limited runs in a container of its own, as nobody there can make a cgroup. The
// containers share the folder of the cluster, the network and the numbers of processes. All that differs from a process
// of the supervisor's own is who starts it and waits for it: Contain, which runs in that container and is asked over a
// socket. A connection is the lifeline of one process, as the supervisor's standard input is that of a cluster.

// greeting is what Contain says to whoever connects: which process it is.
type greeting struct {
	PID        int   `json:"pid"`
	StartTicks int64 `json:"startTicks"`
}

// request is what to start. The file that takes the process's output comes before it, with one byte.
type request struct {
	Path string   `json:"path"`
	Args []string `json:"args"`
	Env  []string `json:"env"`
	Dir  string   `json:"dir"`
}

// answer says that a process runs, or why it doesn't. A second one says how it ended.
type answer struct {
	PID        int                `json:"pid,omitempty"`
	StartTicks int64              `json:"startTicks,omitempty"`
	Error      string             `json:"error,omitempty"`
	Ended      bool               `json:"ended,omitempty"`
	Status     syscall.WaitStatus `json:"status,omitempty"`
}

// Contain starts processes in its own container, one at a time, for a supervisor that connects to the socket. A process
// ends with its connection. Contain returns when ctx ends.
func Contain(ctx context.Context, socket string) error {
	runtime.LockOSThread() // processes get their parent-death signal when the thread that started them ends
	defer runtime.UnlockOSThread()
	if err := os.MkdirAll(filepath.Dir(socket), 0o700); err != nil {
		return err
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a container that was killed
		return err
	}
	me, err := identify(os.Getpid())
	if err != nil {
		return err
	}
	in, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return err
	}
	defer in.Close()
	defer context.AfterFunc(ctx, func() { in.Close() })()
	for {
		conn, err := in.AcceptUnix()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		err = serve(ctx, conn, greeting{me.PID, me.StartTicks})
		if err := errors.Join(err, conn.Close()); err != nil {
			fmt.Fprintln(os.Stderr, "a connection broke:", err) // whoever asked sees that, too
		}
	}
}

// serve starts the process that somebody asks for on a connection, and says how it ended. Who only asks whether somebody
// is there asks for none.
func serve(ctx context.Context, conn *net.UnixConn, hello greeting) error {
	say := json.NewEncoder(conn)
	if err := say.Encode(hello); err != nil {
		return err
	}
	out, err := receiveFile(conn)
	if err != nil || out == nil {
		return err
	}
	defer out.Close()
	var r request
	if err := json.NewDecoder(conn).Decode(&r); err != nil {
		return err
	}
	cmd := exec.Command(r.Path, r.Args...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = r.Env, r.Dir, out, out, withParent()
	if err := cmd.Start(); err != nil {
		return say.Encode(answer{Error: err.Error()})
	}
	_ = out.Close() // the process has its own
	me, err := identify(cmd.Process.Pid)
	if err == nil {
		err = say.Encode(answer{PID: me.PID, StartTicks: me.StartTicks})
	}
	kill := func() { _ = cmd.Process.Kill() } // that it has ended is no error
	defer context.AfterFunc(ctx, kill)()
	go func() {
		_, _ = io.Copy(io.Discard, conn) // nothing more comes; how the connection ends doesn't matter
		kill()
	}()
	if err != nil {
		kill()
	}
	_ = cmd.Wait() // its state says how it ended
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	return errors.Join(err, say.Encode(answer{Ended: true, Status: status}))
}

// sendFile sends an open file over a connection, with one byte.
func sendFile(conn *net.UnixConn, f *os.File) error {
	_, _, err := conn.WriteMsgUnix([]byte{0}, syscall.UnixRights(int(f.Fd())), nil)
	return err
}

// receiveFile receives a file that sendFile sent; nil if the connection ends before.
func receiveFile(conn *net.UnixConn) (*os.File, error) {
	room := make([]byte, syscall.CmsgSpace(4))
	n, got, _, _, err := conn.ReadMsgUnix(make([]byte, 1), room)
	if n == 0 && (err == nil || errors.Is(err, io.EOF)) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	messages, err := syscall.ParseSocketControlMessage(room[:got])
	if err != nil {
		return nil, err
	}
	if len(messages) != 1 {
		return nil, fmt.Errorf("want one file, got %d messages", len(messages))
	}
	files, err := syscall.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, err
	}
	if len(files) != 1 {
		return nil, fmt.Errorf("want one file, got %d", len(files))
	}
	syscall.CloseOnExec(files[0])
	return os.NewFile(uintptr(files[0]), "output"), nil
}
