package wire

import (
	"math/bits"

	"github.com/cilium/ebpf/asm"
)

// Field offsets in a program's argument, struct __sk_buff.
const (
	skbLen      = 0
	skbProtocol = 16
)

// Offsets on a program's stack.
const (
	stackKey  = -8  // the socket's cookie
	stackConn = -16 // the number of its connection
	stackSeq  = -24 // the sequence number of the segment's first byte
	stackHead = -48 // the beginning of a header
)

// A record is a head and the segment's first bytes. All numbers are in host byte order.
const (
	headTime   = 0  // u64: CLOCK_MONOTONIC, ns
	headConn   = 8  // u32
	headOut    = 12 // u32: 1 if the segment is sent, 0 if received
	headSeq    = 16 // u32
	headLength = 20 // u32: of the segment's payload
	headCopied = 24 // u32: bytes of it in this record
)

const (
	protocolTCP = 6
	noWakeup    = 1 // of bpf_ringbuf_submit: the reader looks by itself
	pass        = 1
)

// network returns a 16-bit number in network byte order.
func network(n uint16) int32 { return int32(bits.ReverseBytes16(n)) }

// program returns the instructions for packets that the cgroup's sockets send or receive. on is the
// map whose first value switches recording on, lost counts what found no room, conns maps socket
// cookies to connection numbers, and ring takes the records. The first segment that finds no room
// switches recording off, so that what was recorded has no hole. All packets pass.
func program(out bool, on, lost, conns, ring int) asm.Instructions {
	// Callee-saved registers: R6 is the packet, R7 the length of the payload, R8 its offset, R9 the
	// record.
	load := func(offset asm.Instruction, n int32) asm.Instructions {
		return asm.Instructions{
			asm.Mov.Reg(asm.R1, asm.R6), offset,
			asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, stackHead), asm.Mov.Imm(asm.R4, n),
			asm.FnSkbLoadBytes.Call(), asm.JNE.Imm(asm.R0, 0, "pass"),
		}
	}
	at := func(name string, all asm.Instructions) asm.Instructions {
		all[0] = all[0].WithSymbol(name)
		return all
	}
	var sent int64
	if out {
		sent = 1
	}
	all := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMapValue(asm.R1, on, 0),
		asm.LoadMem(asm.R1, asm.R1, 0, asm.DWord),
		asm.JEq.Imm(asm.R1, 0, "pass"),
		asm.Mov.Reg(asm.R1, asm.R6), asm.FnGetSocketCookie.Call(), asm.StoreMem(asm.RFP, stackKey, asm.R0, asm.DWord),
		asm.LoadMapPtr(asm.R1, conns), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, stackKey), asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "pass"),
		asm.LoadMem(asm.R1, asm.R0, 0, asm.Word), asm.StoreMem(asm.RFP, stackConn, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, asm.R6, skbProtocol, asm.Word),
		asm.JEq.Imm(asm.R1, network(0x86dd), "v6"),
		asm.JNE.Imm(asm.R1, network(0x0800), "pass"),
	}
	all = append(all, load(asm.Mov.Imm(asm.R2, 0), 20)...)
	all = append(all,
		asm.LoadMem(asm.R1, asm.RFP, stackHead+9, asm.Byte), asm.JNE.Imm(asm.R1, protocolTCP, "pass"),
		asm.LoadMem(asm.R8, asm.RFP, stackHead, asm.Byte), asm.And.Imm(asm.R8, 15), asm.LSh.Imm(asm.R8, 2),
		asm.Ja.Label("tcp"),
	)
	all = append(all, at("v6", load(asm.Mov.Imm(asm.R2, 6), 1))...)
	all = append(all,
		asm.LoadMem(asm.R1, asm.RFP, stackHead, asm.Byte), asm.JNE.Imm(asm.R1, protocolTCP, "pass"),
		asm.Mov.Imm(asm.R8, 40),
	)
	all = append(all, at("tcp", load(asm.Mov.Reg(asm.R2, asm.R8), 16))...)
	all = append(all,
		asm.LoadMem(asm.R1, asm.RFP, stackHead+4, asm.Word), asm.HostTo(asm.BE, asm.R1, asm.Word), asm.StoreMem(asm.RFP, stackSeq, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, asm.RFP, stackHead+12, asm.Byte), asm.RSh.Imm(asm.R1, 4), asm.LSh.Imm(asm.R1, 2), asm.Add.Reg(asm.R8, asm.R1),
		asm.LoadMem(asm.R7, asm.R6, skbLen, asm.Word), asm.Sub.Reg(asm.R7, asm.R8), asm.JSLE.Imm(asm.R7, 0, "pass"),
	)
	for i, room := range classes {
		size := int32(room)
		last := i == len(classes)-1
		name, next := className(i), className(i+1)
		if last {
			all = append(all, asm.Mov.Reg(asm.R0, asm.R7).WithSymbol(name))
		} else {
			all = append(all, asm.JGT.Imm(asm.R7, size, next).WithSymbol(name))
		}
		all = append(all,
			asm.LoadMapPtr(asm.R1, ring), asm.Mov.Imm(asm.R2, headSize+size), asm.Mov.Imm(asm.R3, 0), asm.FnRingbufReserve.Call(),
			asm.JEq.Imm(asm.R0, 0, "lost"),
			asm.Mov.Reg(asm.R9, asm.R0),
			asm.FnKtimeGetNs.Call(), asm.StoreMem(asm.R9, headTime, asm.R0, asm.DWord),
			asm.LoadMem(asm.R1, asm.RFP, stackConn, asm.DWord), asm.StoreMem(asm.R9, headConn, asm.R1, asm.Word),
			asm.StoreImm(asm.R9, headOut, sent, asm.Word),
			asm.LoadMem(asm.R1, asm.RFP, stackSeq, asm.DWord), asm.StoreMem(asm.R9, headSeq, asm.R1, asm.Word),
			asm.StoreMem(asm.R9, headLength, asm.R7, asm.Word),
			asm.Mov.Reg(asm.R4, asm.R7),
		)
		if last {
			all = append(all, asm.JLE.Imm(asm.R4, size, "fits"), asm.Mov.Imm(asm.R4, size), asm.StoreMem(asm.R9, headCopied, asm.R4, asm.Word).WithSymbol("fits"))
		} else {
			all = append(all, asm.StoreMem(asm.R9, headCopied, asm.R4, asm.Word))
		}
		all = append(all,
			asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Reg(asm.R2, asm.R8), asm.Mov.Reg(asm.R3, asm.R9), asm.Add.Imm(asm.R3, headSize), asm.FnSkbLoadBytes.Call(),
			asm.JEq.Imm(asm.R0, 0, name+" submit"), asm.StoreImm(asm.R9, headCopied, 0, asm.Word),
			asm.Mov.Reg(asm.R1, asm.R9).WithSymbol(name+" submit"), asm.Mov.Imm(asm.R2, noWakeup), asm.FnRingbufSubmit.Call(),
			asm.Ja.Label("pass"),
		)
	}
	return append(all,
		asm.LoadMapValue(asm.R1, on, 0).WithSymbol("lost"), asm.Mov.Imm(asm.R2, 0), asm.StoreMem(asm.R1, 0, asm.R2, asm.DWord),
		asm.LoadMapValue(asm.R1, lost, 0), asm.Mov.Imm(asm.R2, 1), asm.StoreXAdd(asm.R1, asm.R2, asm.DWord),
		asm.Mov.Imm(asm.R0, pass).WithSymbol("pass"), asm.Return(),
	)
}

func className(i int) string { return "class " + string(rune('0'+i)) }
