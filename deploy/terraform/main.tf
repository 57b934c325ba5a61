# An example of hosts for weir fleet up, on AWS. It was never applied, and never validated with the provider: read it before
# you use it. It costs money until terraform destroy.
#
#   terraform apply -var key_name=KEY -var from=$(curl -s https://checkip.amazonaws.com)/32
#   terraform output -raw hosts >hosts.yaml
#   weir run --hosts hosts.yaml FILE
terraform {
  required_providers {
    aws = { source = "hashicorp/aws", version = "~> 5.0" }
  }
}

variable "key_name" { description = "Name of your key pair in the region; ssh must use it without a question." }
variable "from" { description = "Addresses that may use SSH, such as 198.51.100.7/32." }
variable "agents" { default = 3 }
variable "instance_type" { default = "c7i.4xlarge" } # a fixed rate of the processor: no burstable type

data "aws_ami" "debian" {
  most_recent = true
  owners      = ["136693071363"] # Debian
  filter {
    name   = "name"
    values = ["debian-12-amd64-*"]
  }
}

# One rack, for the shortest way between the hosts.
resource "aws_placement_group" "weir" {
  name     = "weir"
  strategy = "cluster"
}

resource "aws_security_group" "weir" {
  name = "weir"
  ingress {
    description = "SSH; agents join through it"
    from_port   = 22
    to_port     = 22
    protocol    = "tcp"
    cidr_blocks = [var.from]
  }
  ingress {
    description = "all, between the hosts"
    from_port   = 0
    to_port     = 0
    protocol    = "-1"
    self        = true
  }
  egress {
    from_port   = 0
    to_port     = 0
    protocol    = "-1"
    cidr_blocks = ["0.0.0.0/0"]
  }
}

resource "aws_instance" "agent" {
  count                  = var.agents
  ami                    = data.aws_ami.debian.id
  instance_type          = var.instance_type
  key_name               = var.key_name
  placement_group        = aws_placement_group.weir.id
  vpc_security_group_ids = [aws_security_group.weir.id]
  tags                   = { Name = "weir-${count.index}" }
}

# The host's key must be known: ssh-keyscan, or accept-new in your ~/.ssh/config.
output "hosts" {
  value = yamlencode({
    weir-hosts = 1
    listen     = "127.0.0.1:7622" # agents join through their SSH connections
    hosts      = { for i, h in aws_instance.agent : "agent-${i}" => { ssh = "admin@${h.public_ip}", platform = "linux/amd64" } }
  })
}
