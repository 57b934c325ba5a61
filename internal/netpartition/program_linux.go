package netpartition

import (
	"math/bits"

	"github.com/cilium/ebpf/asm"
)

// Field offsets in a program's argument, struct __sk_buff.
const (
	skbProtocol  = 16
	skbInterface = 40
)

// loopbackIndex is the index of the loopback device in every network namespace.
const loopbackIndex = 1

// Offsets on a program's stack.
const (
	stackTuple  = -40 // the two ends of the other socket: struct bpf_sock_tuple
	stackHead   = -64 // the beginning of the packet
	stackGroup  = -72 // the ID of the other socket's group
	tupleV4     = 12
	tupleV6     = 36
	protocolTCP = 6
	protocolUDP = 17
)

// Return values of a program. When a sent packet is dropped, TCP and the process are told. TCP treats
// it as a loss, or as a busy host if the return value says so. A process that sends datagrams is not
// told about a busy host.
const (
	dropped = 0
	passed  = 1
	busy    = 2
)

// network returns a 16-bit number in network byte order.
func network(n uint16) int32 { return int32(bits.ReverseBytes16(n)) }

// program returns the instructions for the packets that a node sends or receives. rules is the map
// with rows; groups maps group IDs to node numbers.
//
// Packets between two nodes are dropped at the receiver, so that the sender is not told. A sender
// would learn about a packet dropped on sending, so this is done only if none of weir's programs is at
// the other end.
func program(node int, sends bool, rules, groups int) asm.Instructions {
	// Callee-saved registers: R6 is the packet, R7 from whom the node is partitioned, R8 the other end, R9
	// the protocol.
	at := func(name string, all asm.Instructions) asm.Instructions {
		all[0] = all[0].WithSymbol(name)
		return all
	}
	// load reads bytes of the packet. If there are none, the other end is unknown.
	load := func(from, to, n int32) asm.Instructions {
		return asm.Instructions{
			asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Imm(asm.R2, from),
			asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, to), asm.Mov.Imm(asm.R4, n),
			asm.FnSkbLoadBytes.Call(), asm.JNE.Imm(asm.R0, 0, "unknown"),
		}
	}
	// ports reads the ports after a header of R8 bytes.
	ports := func(from, to, n int32) asm.Instructions {
		all := load(0, to, n)
		all[1] = asm.Mov.Reg(asm.R2, asm.R8)
		return append(all[:2:2], append(asm.Instructions{asm.Add.Imm(asm.R2, from)}, all[2:]...)...)
	}
	// ends reads both ends as the other socket sees packets: from here to there.
	ends := func(source, size int32) (all asm.Instructions) {
		if sends {
			return append(load(source, stackTuple, 2*size), ports(0, stackTuple+2*size, 4)...)
		}
		all = append(load(source+size, stackTuple, size), load(source, stackTuple+size, size)...)
		all = append(all, ports(2, stackTuple+2*size, 2)...)
		return append(all, ports(0, stackTuple+2*size+2, 2)...)
	}
	// find looks up the other socket by protocol.
	find := func(size int32, udp string) asm.Instructions {
		call := func(f asm.BuiltinFunc) asm.Instructions {
			return asm.Instructions{
				asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, stackTuple), asm.Mov.Imm(asm.R3, size),
				asm.Mov.Imm(asm.R4, -1), asm.Mov.Imm(asm.R5, 0), f.Call(), asm.Ja.Label("found"),
			}
		}
		all := append(asm.Instructions{asm.JEq.Imm(asm.R9, protocolUDP, udp), asm.JNE.Imm(asm.R9, protocolTCP, "unknown")}, call(asm.FnSkLookupTcp)...)
		return append(all, at(udp, call(asm.FnSkLookupUdp))...)
	}
	far := asm.Instructions{asm.LoadMem(asm.R1, asm.R6, skbInterface, asm.Word), asm.JNE.Imm(asm.R1, loopbackIndex, "client")} // on another host
	all := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMapValue(asm.R1, rules, uint32(8*node)),
		asm.LoadMem(asm.R7, asm.R1, 0, asm.DWord),
		asm.JEq.Imm(asm.R7, 0, "pass"),
		asm.Mov.Imm(asm.R9, 0),
		asm.LoadMem(asm.R1, asm.R6, skbProtocol, asm.Word),
		asm.JEq.Imm(asm.R1, network(0x86dd), "v6"),
		asm.JNE.Imm(asm.R1, network(0x0800), "client"),
	}
	all = append(all, load(0, stackHead, 20)...)
	all = append(all,
		asm.LoadMem(asm.R8, asm.RFP, stackHead, asm.Byte), asm.And.Imm(asm.R8, 15), asm.LSh.Imm(asm.R8, 2),
		asm.LoadMem(asm.R9, asm.RFP, stackHead+9, asm.Byte),
	)
	all = append(all, far...)
	all = append(all, ends(12, 4)...)
	all = append(all, find(tupleV4, "udp4")...)
	v6 := at("v6", load(6, stackHead, 1))
	v6 = append(v6, asm.LoadMem(asm.R9, asm.RFP, stackHead, asm.Byte), asm.Mov.Imm(asm.R8, 40))
	v6 = append(v6, far...)
	v6 = append(v6, ends(8, 16)...)
	all = append(all, v6...)
	all = append(all, find(tupleV6, "udp6")...)
	all = append(all, at("found", asm.Instructions{
		asm.JEq.Imm(asm.R0, 0, "unknown"),
		asm.Mov.Reg(asm.R8, asm.R0),
		asm.Mov.Reg(asm.R1, asm.R8), asm.FnSkCgroupId.Call(), asm.StoreMem(asm.RFP, stackGroup, asm.R0, asm.DWord),
		asm.Mov.Reg(asm.R1, asm.R8), asm.FnSkRelease.Call(),
		asm.LoadMapPtr(asm.R1, groups), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, stackGroup), asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "client"),
	})...)
	if sends { // the other node's program decides
		all = append(all, asm.Ja.Label("pass"))
	} else {
		all = append(all,
			asm.LoadMem(asm.R8, asm.R0, 0, asm.Word), asm.And.Imm(asm.R8, 63), // the constant 63 satisfies the verifier
			asm.Mov.Imm(asm.R1, 1), asm.LSh.Reg(asm.R1, asm.R8), asm.And.Reg(asm.R1, asm.R7),
			asm.JEq.Imm(asm.R1, 0, "pass"), asm.Ja.Label("drop"),
		)
	}
	// There is no socket at the other end any more, or yet. It may have been a node, so that the kernel's
	// reply for a port without a listener would reveal that the host is alive.
	all = append(all, asm.JEq.Imm(asm.R9, protocolTCP, "drop").WithSymbol("unknown"))
	silent := int32(dropped)
	if sends {
		silent = busy
	}
	return append(all,
		asm.And.Imm(asm.R7, 1).WithSymbol("client"), asm.JEq.Imm(asm.R7, 0, "pass"),
		asm.Mov.Imm(asm.R0, dropped).WithSymbol("drop"), asm.JEq.Imm(asm.R9, protocolTCP, "end"), asm.Mov.Imm(asm.R0, silent),
		asm.Return().WithSymbol("end"),
		asm.Mov.Imm(asm.R0, passed).WithSymbol("pass"), asm.Return(),
	)
}
