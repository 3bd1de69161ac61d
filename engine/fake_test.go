package engine_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// TestMain lets the test binary be the program that is run: "fake KIND …".
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "fake" {
		fakes := map[string]func([]string) error{"exec": fakeExec, "protocol": fakeProtocol}
		if err := fakes[os.Args[2]](os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, "fake:", err)
			os.Exit(4)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// quickEnd keeps the race detector of a fake from waiting a second at its end.
var quickEnd = []string{"GORACE=atexit_sleep_ms=0"}

// fakeLine is a command line that runs the test binary as a fake.
func fakeLine(kind, args string) string {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return "'" + exe + "' fake " + kind + " " + args
}

// floatDump is a float dump of two rows: the ids, and their negatives.
func floatDump(text string, ids []int) []byte {
	rows := make([]float32, 0, 2*len(ids))
	for _, sign := range []int{1, -1} {
		for _, id := range ids {
			rows = append(rows, float32(sign*id))
		}
	}
	return []byte(raw(layerHeader(2, uint64(len(ids)), dumpfmt.Fingerprint(text), 1), rows))
}

// idProbes are two probes of width 1: the ids as the embedding, and the negative
// of the first alone as the final norm.
func idProbes(ids []int) string {
	rows := make([]float32, len(ids))
	for i, id := range ids {
		rows[i] = float32(id)
	}
	return probeBytes(tensor{"embed", "F32", []int{len(ids), 1}, raw(rows)}, tensor{"final_norm", "F32", []int{1, 1}, raw(-rows[0])})
}

// fakeExec is a program for Exec: MODE {ids_file} {text_file} {dir} [ARG].
func fakeExec(args []string) error {
	mode, dir := args[0], args[3]
	idsText, err := os.ReadFile(args[1])
	if err != nil {
		return err
	}
	var ids []int
	for _, word := range strings.Fields(string(idsText)) {
		var id int
		if _, err := fmt.Sscan(word, &id); err != nil {
			return err
		}
		ids = append(ids, id)
	}
	text, err := os.ReadFile(args[2])
	if err != nil {
		return err
	}
	layers := filepath.Join(dir, "case.layers.bin")
	dump := floatDump(string(text), ids)
	write := func(name, data string) error {
		return os.WriteFile(filepath.Join(dir, name), []byte(data), 0o666)
	}
	if mode != "undeclared" {
		if err := write("engine.json", `{"name":"fake","layers":"f32","logits":"i32","kv_cache":"int8"}`); err != nil {
			return err
		}
	}
	switch mode {
	case "undeclared", "right":
	case "hang":
		time.Sleep(time.Hour)
	case "crash":
		fmt.Fprintln(os.Stderr, "out of memory in layer 7")
		os.WriteFile(layers, dump, 0o666) // a whole answer, from a program that failed
		os.Exit(3)
	case "silent crash":
		os.Exit(3)
	case "talkative crash":
		fmt.Println("assertion failed")
		os.Exit(3)
	case "flood":
		line := bytes.Repeat([]byte("x"), 99)
		for range 100_000 {
			fmt.Fprintf(os.Stderr, "%s\n", line)
			fmt.Printf("%s\n", line)
		}
		fmt.Fprintln(os.Stderr, "the last words")
		if args[4] == "fail" {
			os.Exit(5)
		}
	case "unsupported":
		fmt.Fprint(os.Stderr, "loading\nprompts of this length are not supported\n\n")
		fmt.Println("bye") // not the reason
		os.Exit(77)
	case "nothing":
		fmt.Fprintln(os.Stderr, "forgot the dump")
		return nil
	case "half":
		dump = dump[:len(dump)-5]
	case "garbage":
		dump = []byte("these are not the bytes of a layer dump, and they are long enough for a header")
	case "another prompt":
		dump = floatDump("another prompt", ids)
	case "another text":
		if err := write("case.json", `{"text":"a","token_ids":[4,5]}`); err != nil {
			return err
		}
	case "output ids":
		err = errors.Join(write("case.json", `{"text":"foobar","token_ids":[4,5],"output_ids":[6]}`),
			write("case.logits.bin", int32Logits))
	case "probes":
		return write("case.probes.safetensors", idProbes(ids))
	case "probes of no model":
		err = write("case.probes.safetensors", probeBytes(tensor{"hidden", "F32", []int{1, 1}, raw(float32(1))}))
	case "other types":
		err = write("engine.json", `{"name":"fake","layers":"int8-scaled"}`)
	case "trailer":
		err = write("engine.json", `{"name":"fake","layers":"int8-scaled"}`)
		dump = []byte(int8Layers + "trailer")
	case "broken engine.json":
		err = write("engine.json", `{"name":"fake"`)
	case "device":
		return os.Symlink("/dev/zero", layers)
	case "folder":
		return os.Mkdir(layers, 0o777)
	case "folder gone":
		return os.RemoveAll(dir)
	case "alone":
		// Two at a time would find each other's lock.
		if err := os.Mkdir(args[4], 0o777); err != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
		err = os.Remove(args[4])
	case "child left behind":
		child := exec.Command("sleep", "3600")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		err = child.Start()
	default:
		err = errors.New("no such mode: " + mode)
	}
	return errors.Join(err, os.WriteFile(layers, dump, 0o666))
}

// fakeProtocol is a program for Protocol. What it does wrong depends on the name
// of the case, so that one process does right and wrong in turns; START says
// what it does at the handshake, and LOG gets a line for each start.
func fakeProtocol(args []string) error {
	start, logFile := args[0], args[1]
	log, err := os.OpenFile(logFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	fmt.Fprintf(log, "start\npid %d\n", os.Getpid())
	log.Close()
	starts, err := os.ReadFile(logFile)
	if err != nil {
		return err
	}
	in := bufio.NewReader(os.Stdin)
	if hello, err := in.ReadString('\n'); err != nil || hello != "{\"plumbline\":1}\n" {
		return fmt.Errorf("handshake: got %q, %v", hello, err)
	}
	capabilities := `{"plumbline":1,"name":"fake","layers":"f32","logits":"i32","probes":["embed"],"smoke":true,"mine":{"free":1}}`
	switch start {
	case "good":
	case "changing":
		capabilities = fmt.Sprintf(`{"plumbline":1,"name":"start %d","layers":"f32"}`, bytes.Count(starts, []byte("start")))
	case "silent":
		time.Sleep(time.Hour)
	case "crash":
		fmt.Fprintln(os.Stderr, "no such model")
		os.Exit(3)
	case "stubborn":
		defer time.Sleep(time.Hour)
	case "last words":
		defer fmt.Println(`{"ok":true}`)
	case "bad end":
		defer os.Exit(6)
	default:
		capabilities = start
	}
	fmt.Println(capabilities)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		var req struct {
			Case, Text  string
			TokenIDs    []int    `json:"token_ids"`
			DecodeSteps int      `json:"decode_steps"`
			Stop        []int    `json:"stop"`
			Probes      []string `json:"probes"`
			Out         struct{ Dir, Layers, Logits, Probes string }
		}
		dec := json.NewDecoder(bytes.NewReader(line))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&req); err != nil {
			return err
		}
		dump := floatDump(req.Text, req.TokenIDs)
		reply := `{"ok":true}`
		mode, arg, _ := strings.Cut(req.Case, ":")
		switch mode {
		case "good":
		case "echo":
			reply = fmt.Sprintf(`{"ok":true,"case":%q}`, req.Case)
		case "request":
			// What came, for the test to look at.
			if err := os.WriteFile(arg, line, 0o666); err != nil {
				return err
			}
		case "late":
			time.Sleep(time.Hour)
		case "twice":
			reply += "\n" + reply
		case "reply":
			reply = arg
		case "bad utf-8":
			reply = "{\"error\":\"\xff\"}"
		case "nothing":
			dump = nil
		case "half file":
			dump = dump[:40]
		case "exit":
			fmt.Fprintln(os.Stderr, "fatal: lost the device")
			os.Exit(3)
		case "half line":
			fmt.Print(`{"ok":tr`)
			os.Exit(3)
		case "long":
			reply = strings.Repeat("x", 2<<20)
		case "endless":
			for {
				if _, err := os.Stdout.WriteString(strings.Repeat("x", 1<<16)); err != nil {
					return err
				}
			}
		case "flood":
			for range 100_000 {
				fmt.Fprintln(os.Stderr, strings.Repeat("x", 99))
			}
		case "flood of errors", "long line":
			// 256 MiB on standard error, or in one line.
			to := map[string]*os.File{"flood of errors": os.Stderr, "long line": os.Stdout}[mode]
			piece := bytes.Repeat([]byte("x"), 1<<20)
			for range 256 {
				if _, err := to.Write(piece); err != nil {
					return err
				}
			}
		case "flood of answers":
			if err := os.WriteFile(req.Out.Layers, dump, 0o666); err != nil {
				return err
			}
			many := []byte(strings.Repeat(reply+"\n", 1<<16))
			for {
				if _, err := os.Stdout.Write(many); err != nil {
					return err
				}
			}
		case "trickle":
			for {
				time.Sleep(20 * time.Millisecond)
				fmt.Print(" ")
			}
		case "told":
			told := fmt.Sprintf(`{"text":%q,"token_ids":[5]}`, req.Text)
			if err := os.WriteFile(filepath.Join(req.Out.Dir, "case.json"), []byte(told), 0o666); err != nil {
				return err
			}
		case "probes":
			if err := os.WriteFile(req.Out.Probes, []byte(idProbes(req.TokenIDs)), 0o666); err != nil {
				return err
			}
		case "probes of no model":
			data := probeBytes(tensor{"hidden", "F32", []int{1, 1}, raw(float32(1))})
			if err := os.WriteFile(req.Out.Probes, []byte(data), 0o666); err != nil {
				return err
			}
		case "other types":
			os.WriteFile(filepath.Join(req.Out.Dir, "engine.json"), []byte(`{"name":"fake","layers":"int8-scaled"}`), 0o666)
		default:
			return errors.New("no such case: " + mode)
		}
		if dump != nil {
			if err := os.WriteFile(req.Out.Layers, dump, 0o666); err != nil {
				return err
			}
		}
		fmt.Println(reply)
	}
}
